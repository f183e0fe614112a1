//! The description of all served kinds as OpenAPI documents.
