//! What files say, what names tell, and what is asked of the command line.
