# The second half: the finished handler must not be called again.

import kopf


@kopf.on.create('kopfexamples')
def first_fn(**_):
    return {'by': 'carry_on'}


@kopf.on.create('kopfexamples')
def second_fn(retry, **_):
    if retry < 2:
        print("the first attempt")
    return {'by': 'carry_on'}
