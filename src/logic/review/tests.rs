//! Claims about reviews.
