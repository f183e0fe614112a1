-- says: the source has more than 200000 words and symbols
-- at: load
@@41000:x = 1 + 1 @@
