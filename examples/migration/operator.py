"""Leases of volumes: a claim for each lease, as long as the lease exists."""

import asyncio
import datetime
import json
import logging
import re

import kopf
import yaml
from kubernetes_asyncio import client, config
from kubernetes_asyncio.client import ApiException

GROUP, VERSION, PLURAL = "example.com", "v1", "volumeleases"
DEFAULT_SIZE = "1Gi"
UNITS = {"Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}
BACKUP = """
apiVersion: batch/v1
kind: Job
metadata:
  name: {name}-backup
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: copy
          image: {image}
          args: {args}
          volumeMounts:
            - {{ name: data, mountPath: /data, readOnly: true }}
      volumes:
        - name: data
          persistentVolumeClaim: {{ claimName: {claim} }}
"""


def mebibytes(size):
    match = re.fullmatch(r"(\d+)(Mi|Gi|Ti)", str(size))
    if not match:
        raise kopf.PermanentError(f"spec.size is no size: {size}")
    return int(match[1]) * UNITS[match[2]]


def is_expiring(spec, **_):
    return spec.get("ttl") is not None


class Cluster:
    """The API, asked with patience: a server that is busy is asked again."""

    BUSY = (429, 500, 503, 504)

    def __init__(self, attempts=3, pause=0.5):
        self.attempts = attempts
        self.pause = pause

    async def call(self, group, method, *args, missing_ok=False, **kwargs):
        for attempt in range(1, self.attempts + 1):
            try:
                async with client.ApiClient() as api:
                    return await getattr(group(api), method)(*args, **kwargs)
            except ApiException as error:
                if error.status == 404 and missing_ok:
                    return None
                if error.status not in self.BUSY or attempt == self.attempts:
                    raise
            await asyncio.sleep(self.pause * attempt)

    async def patch_claim(self, name, namespace, patch):
        method = "patch_namespaced_persistent_volume_claim"
        return await self.call(client.CoreV1Api, method, name, namespace, patch)


cluster = Cluster()


# The operator itself.

@kopf.on.startup()
async def configure(settings, memo, **_):
    settings.posting.level = logging.WARNING
    settings.execution.default_backoff = 2
    settings.background.cancellation_polling = 1  # `expire` deletes its own object
    memo.prefix = "lease-"
    try:
        config.load_incluster_config()
    except config.ConfigException:
        await config.load_kube_config()


@kopf.on.login(retries=3)
async def login(**kwargs):
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)


@kopf.on.cleanup()
async def finish(logger, **_):
    logger.info("No lease is served any more.")


@kopf.on.probe(id="now")
async def tell_the_time(**_):
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


# Indexes and events.

@kopf.index("persistentvolumeclaims", labels={"example.com/lease": kopf.PRESENT})
async def claims(name, namespace, labels, **_):
    return {(namespace, labels["example.com/lease"]): name}


@kopf.on.event("persistentvolumeclaims", labels={"example.com/lease": kopf.PRESENT})
async def note_phase(type, name, status, logger, **_):
    if type != "DELETED":
        logger.info(f"The claim {name} is {status.get('phase', 'new')}.")


# Changes of leases.

@kopf.on.create(PLURAL, retries=5)
@kopf.on.resume(PLURAL, retries=5)
async def provide(name, namespace, spec, body, memo, logger, **_):
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
    kopf.event(body, type="Normal", reason="Provided", message=f"It has {made.metadata.name}.")
    return {"claim": made.metadata.name}


@kopf.on.field(PLURAL, field="spec.size")
async def resize(old, new, name, namespace, body, memo, patch, **_):
    if old is None or new is None:
        return
    if mebibytes(new) < mebibytes(old):
        patch.status["problem"] = f"cannot shrink from {old} to {new}"
        kopf.warn(body, reason="Shrinking", message="A volume does not shrink.")
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
    await cluster.patch_claim(memo.prefix + name, namespace, {"metadata": {"labels": labels}})


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


@kopf.on.field(PLURAL, field="spec.backup")
async def back_up(old, new, name, namespace, memo, logger, **_):
    if old is not None:
        await cluster.call(
            client.BatchV1Api, "delete_namespaced_job", f"{name}-backup", namespace,
            propagation_policy="Background", missing_ok=True)
        logger.info("The backup is given up.")
    if new is None:
        return None
    args = json.dumps(new.get("args", []))
    job = yaml.safe_load(BACKUP.format(
        name=name, image=new["image"], args=args, claim=memo.prefix + name))
    kopf.label(job, {"example.com/backup": name}, nested="spec.template")
    kopf.adopt(job)
    made = await cluster.call(client.BatchV1Api, "create_namespaced_job", namespace, job)
    return {"job": made.metadata.name, "image": new["image"]}


@kopf.on.create(PLURAL)
@kopf.on.update(PLURAL, field="spec")
async def summarize(spec, patch, **_):
    parts = [spec.get("size", DEFAULT_SIZE)]
    snapshots = len(spec.get("snapshots", []))
    if snapshots:
        parts.append("1 snapshot" if snapshots == 1 else f"{snapshots} snapshots")
    if "backup" in spec:
        parts.append("backup by " + spec["backup"]["image"])
    if spec.get("keep"):
        parts.append("kept at the end")
    patch.status["summary"] = ", ".join(parts)


@kopf.on.delete(PLURAL, when=lambda spec, **_: spec.get("keep", False))
async def keep_the_claim(name, namespace, memo, logger, **_):
    release = {"metadata": {"ownerReferences": None, "labels": {"example.com/kept": "true"}}}
    await cluster.patch_claim(memo.prefix + name, namespace, release)
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
