-- expect: Expected identifier
-- limit: none
-- at: load
-- A script of bytes is no text.

