-- says: the source has more than 200000 tokens
-- at: load
@@41000:x = 1 + 1 @@
