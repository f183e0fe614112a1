# After the creation: the object is known, and held until its deletion is handled.

import kopf


@kopf.on.resume('kopfexamples')
def resume_fn(**_):
    pass


@kopf.on.delete('kopfexamples')
def delete_fn(**_):
    pass
