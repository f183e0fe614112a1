# The first half: one handler is finished, one is retried until somebody else takes over.

import kopf


@kopf.on.create('kopfexamples')
def first_fn(**_):
    return {'by': 'begin'}


@kopf.on.create('kopfexamples')
def second_fn(**_):
    raise kopf.TemporaryError("Not here.", delay=0.5)
