"""The profile of what operators run, scripts/lib/kopf.profdata.xz: an indexed profile of LLVM without the functions that run seldom."""
import lzma, struct
from pathlib import Path

PROFILE = Path(__file__).with_name("kopf.profdata.xz")
# Of an indexed profile, in 64-bit words: its header has the offset of the hash table of functions.
TABLE_OFFSET = 4
# The lengths before each function: of its hash, of its name, of its counts.
LENGTHS = struct.Struct("<3Q")


def functions(profile):
    """Returns the symbols of the functions in an indexed profile."""
    def words(offset, count):
        return struct.unpack_from(f"<{count}Q", profile, offset)
    table = words(TABLE_OFFSET * 8, 1)[0]
    buckets, entries = words(table, 2)
    found = []
    for place in filter(None, words(table + 16, buckets)):
        count = struct.unpack_from("<H", profile, place)[0]
        place += 2
        for _ in range(count):
            _, name, counts = LENGTHS.unpack_from(profile, place)
            place += LENGTHS.size
            # Those of one file have its name before theirs.
            found.append(profile[place:place + name].decode().rpartition(";")[2])
            place += name + counts
    assert len(found) == entries, f"{len(found)} functions instead of {entries}"
    return sorted(set(found))


def read():
    """Returns the profile as the compiler reads it."""
    return lzma.decompress(PROFILE.read_bytes())
