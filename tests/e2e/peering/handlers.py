"""One of several operators of one namespace."""
import kopf


@kopf.on.startup()
def quick(settings, **_):
    settings.watching.server_timeout = 10
    settings.persistence.consistency_timeout = 1


@kopf.on.create("kopfexamples")
def create_fn(**_):
    pass
