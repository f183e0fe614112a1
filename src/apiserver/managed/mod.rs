//! Who manages which fields: `metadata.managedFields`, and server-side apply.
