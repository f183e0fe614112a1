"""Leases of volumes: a claim for each lease, for as long as the lease is there."""

import datetime
import re

import kopf
from kubernetes_asyncio import client, config
from kubernetes_asyncio.client import ApiException

GROUP, VERSION, PLURAL = "example.com", "v1", "volumeleases"
DEFAULT_SIZE = "1Gi"
UNITS = {"Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}


def mebibytes(size):
    match = re.fullmatch(r"(\d+)(Mi|Gi|Ti)", str(size))
    if not match:
        raise kopf.PermanentError(f"spec.size is no size: {size}")
    return int(match[1]) * UNITS[match[2]]


def is_expiring(spec, **_):
    return spec.get("ttl") is not None


# The operator itself.

@kopf.on.startup()
async def configure(settings, memo, **_):
    settings.posting.enabled = False
    settings.execution.default_backoff = 2
    memo.prefix = "lease-"
    try:
        config.load_incluster_config()
    except config.ConfigException:
        await config.load_kube_config()


@kopf.on.cleanup()
async def finish(logger, **_):
    logger.info("No lease is served any more.")


@kopf.on.probe(id="now")
async def tell_the_time(**_):
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


# What is where.

@kopf.index("persistentvolumeclaims", labels={"example.com/lease": kopf.PRESENT})
async def claims(name, namespace, labels, **_):
    return {(namespace, labels["example.com/lease"]): name}


@kopf.on.event("persistentvolumeclaims", labels={"example.com/lease": kopf.PRESENT})
async def note_phase(type, name, status, logger, **_):
    if type != "DELETED":
        logger.info(f"The claim {name} is {status.get('phase', 'new')}.")


# From the first day of a lease to the last.

@kopf.on.create(PLURAL, retries=5)
@kopf.on.resume(PLURAL, retries=5)
async def provide(name, namespace, spec, memo, logger, **_):
    size = spec.get("size", DEFAULT_SIZE)
    mebibytes(size)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": memo.prefix + name, "labels": {"example.com/lease": name}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
    }
    if "class" in spec:
        claim["spec"]["storageClassName"] = spec["class"]
    kopf.adopt(claim)
    async with client.ApiClient() as api:
        try:
            made = await client.CoreV1Api(api).create_namespaced_persistent_volume_claim(
                namespace, claim)
        except ApiException as error:
            if error.status != 409:
                raise
            logger.info("The claim was there already.")
            return {"claim": memo.prefix + name}
    logger.info(f"The claim {made.metadata.name} is made.")
    return {"claim": made.metadata.name}


@kopf.on.field(PLURAL, field="spec.size")
async def resize(old, new, name, namespace, memo, patch, **_):
    if old is None or new is None:
        return
    if mebibytes(new) < mebibytes(old):
        patch.status["problem"] = f"cannot shrink from {old} to {new}"
        raise kopf.PermanentError("volumes do not shrink")
    change = {"metadata": {"annotations": {"example.com/size": new}}}
    async with client.ApiClient() as api:
        try:
            await client.CoreV1Api(api).patch_namespaced_persistent_volume_claim(
                memo.prefix + name, namespace, change)
        except ApiException as error:
            if error.status == 404:
                raise kopf.TemporaryError("the claim is not there yet", delay=2)
            raise
    patch.status["problem"] = None
    patch.status["size"] = new


@kopf.on.field(PLURAL, field="metadata.labels")
async def relabel(diff, name, namespace, memo, reason, **_):
    if reason == "create":
        return
    labels = {field[0]: new for op, field, old, new in diff if field}
    async with client.ApiClient() as api:
        await client.CoreV1Api(api).patch_namespaced_persistent_volume_claim(
            memo.prefix + name, namespace, {"metadata": {"labels": labels}})


@kopf.on.update(PLURAL, field="spec.snapshots")
async def take_snapshots(spec, name, namespace, **_):
    for snapshot in spec.get("snapshots", []):

        @kopf.subhandler(id=snapshot)
        async def take(snapshot=snapshot, **_):
            note = {
                "metadata": {"name": f"{name}-{snapshot}"},
                "data": {"of": name, "snapshot": snapshot},
            }
            kopf.adopt(note)
            async with client.ApiClient() as api:
                await client.CoreV1Api(api).create_namespaced_config_map(namespace, note)


@kopf.on.delete(PLURAL, when=lambda spec, **_: spec.get("keep", False))
async def keep_the_claim(name, namespace, memo, logger, **_):
    release = {"metadata": {"ownerReferences": None, "labels": {"example.com/kept": "true"}}}
    async with client.ApiClient() as api:
        await client.CoreV1Api(api).patch_namespaced_persistent_volume_claim(
            memo.prefix + name, namespace, release)
    logger.info("The claim stays.")


# In the background.

@kopf.timer(PLURAL, interval=1, when=is_expiring)
async def expire(spec, meta, name, namespace, **_):
    born = datetime.datetime.fromisoformat(meta["creationTimestamp"].replace("Z", "+00:00"))
    age = datetime.datetime.now(datetime.timezone.utc) - born
    if age.total_seconds() > spec["ttl"]:
        async with client.ApiClient() as api:
            await client.CustomObjectsApi(api).delete_namespaced_custom_object(
                GROUP, VERSION, namespace, PLURAL, name)


@kopf.daemon(PLURAL, cancellation_timeout=5)
async def watch_over(stopped, patch, status, name, namespace, claims, **_):
    while not stopped:
        held = sorted(claims.get((namespace, name), []))
        if held != status.get("claims", []):
            patch.status["claims"] = held
            raise kopf.TemporaryError("the claims have changed", delay=1)
        await stopped.wait(1)
