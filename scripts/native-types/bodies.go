package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"time"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	crd "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type message interface{ Marshal() ([]byte, error) }

// bodies prints objects in both forms, for src/apiserver/tests/recorded/protobuf-bodies.json.
func bodies() {
	yes, one, user, port := true, int32(1), int64(7), intstr.FromString("25%")
	labels := map[string]string{"app": "web"}
	at := meta.NewTime(time.Unix(1600000000, 0).UTC())
	pod := core.PodSpec{
		SecurityContext: &core.PodSecurityContext{RunAsUser: &user, SupplementalGroups: []int64{1, 300, -1}},
		Volumes: []core.Volume{
			{Name: "a", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
			{Name: "b", VolumeSource: core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{LocalObjectReference: core.LocalObjectReference{Name: "cm"}}}},
		},
		Containers: []core.Container{{
			Name: "c", Image: "nginx",
			Resources:      core.ResourceRequirements{Requests: core.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}},
			ReadinessProbe: &core.Probe{ProbeHandler: core.ProbeHandler{HTTPGet: &core.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}},
			Env:            []core.EnvVar{{Name: "A", ValueFrom: &core.EnvVarSource{FieldRef: &core.ObjectFieldSelector{FieldPath: "metadata.name"}}}},
		}},
	}
	metadata := meta.ObjectMeta{
		Name: "web", Namespace: "default", Labels: labels, CreationTimestamp: at,
		OwnerReferences: []meta.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u", Controller: &yes}},
		ManagedFields:   []meta.ManagedFieldsEntry{{Manager: "m", Operation: "Update", Time: &at, FieldsV1: &meta.FieldsV1{Raw: []byte(`{"f:data":{}}`)}}},
	}
	template := core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: pod}
	number := 1.5
	schema := &crd.JSONSchemaProps{Type: "object", Maximum: &number, Default: &crd.JSON{Raw: []byte(`{"a":[1]}`)},
		Properties: map[string]crd.JSONSchemaProps{"x": {Type: "array", Items: &crd.JSONSchemaPropsOrArray{Schema: &crd.JSONSchemaProps{Type: "string"}}}},
		AdditionalProperties: &crd.JSONSchemaPropsOrBool{Allows: true}}
	out := []map[string]interface{}{}
	for _, it := range []struct {
		definition, version, kind string
		body                      message
	}{
		{"io.k8s.api.core.v1.Pod", "v1", "Pod", &core.Pod{ObjectMeta: metadata, Spec: pod}},
		{"io.k8s.api.apps.v1.Deployment", "apps/v1", "Deployment", &apps.Deployment{ObjectMeta: metadata, Spec: apps.DeploymentSpec{
			Replicas: &one, Selector: &meta.LabelSelector{MatchLabels: labels}, Template: template,
			Strategy: apps.DeploymentStrategy{Type: "RollingUpdate", RollingUpdate: &apps.RollingUpdateDeployment{MaxSurge: &port}}}}},
		{"io.k8s.api.core.v1.Service", "v1", "Service", &core.Service{ObjectMeta: metadata, Spec: core.ServiceSpec{Selector: labels, Ports: []core.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}}}},
		{"io.k8s.api.core.v1.ConfigMap", "v1", "ConfigMap", &core.ConfigMap{ObjectMeta: metadata, Data: labels, BinaryData: map[string][]byte{"b": {255, 0, 1}}}},
		{"io.k8s.api.core.v1.Secret", "v1", "Secret", &core.Secret{ObjectMeta: metadata, Type: "Opaque", Data: map[string][]byte{"b": {255, 0, 1}}}},
		{"io.k8s.api.core.v1.Namespace", "v1", "Namespace", &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: "ns"}}},
		{"io.k8s.api.batch.v1.Job", "batch/v1", "Job", &batch.Job{ObjectMeta: metadata, Spec: batch.JobSpec{Template: template}}},
		{"io.k8s.api.rbac.v1.Role", "rbac.authorization.k8s.io/v1", "Role", &rbac.Role{ObjectMeta: metadata, Rules: []rbac.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}},
		{"io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "v1", "DeleteOptions", &meta.DeleteOptions{GracePeriodSeconds: &user, DryRun: []string{"All"}}},
		{"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceValidation", "v1", "None", &crd.CustomResourceValidation{OpenAPIV3Schema: schema}},
	} {
		raw, err := it.body.Marshal()
		if err != nil {
			panic(err)
		}
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: it.version, Kind: it.kind}, Raw: raw}
		packed, err := unknown.Marshal()
		if err != nil {
			panic(err)
		}
		out = append(out, map[string]interface{}{"from": "k8s.io/api", "definition": it.definition, "kind": it.kind,
			"protobuf": base64.StdEncoding.EncodeToString(append([]byte("k8s\x00"), packed...)), "json": it.body})
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(out); err != nil {
		panic(err)
	}
}
