-- expect: Expected|unexpected|Malformed|syntax|invalid|bytecode|E
-- limit: none
-- at: load
-- A script of bytes is no text.

