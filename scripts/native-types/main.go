// Prints the facts of the Go types of the native kinds that OpenAPI does not have: which fields are omitted when empty, which are
// pointers, in which order they are written, their Go names (which protobuf errors contain), and their numbers in protobuf.
// Run by scripts/native-schemas. `go run -mod=mod . bodies` prints bodies in protobuf and in JSON instead, for tests.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscalingold "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resource "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	crd "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	registration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var types = map[string]map[string]interface{}{}

func name(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	host := strings.Split(path[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(append(host, path[1:]...), t.Name()), ".")
}

func code(t reflect.Type) string {
	switch t.String() {
	case "resource.Quantity":
		return "quantity"
	case "v1.Time":
		return "time"
	case "v1.MicroTime":
		return "microtime"
	case "intstr.IntOrString":
		return "intorstring"
	case "runtime.RawExtension", "v1.FieldsV1", "v1.JSON", "v1beta1.JSON", "v1.JSONSchemaPropsOrArray", "v1.JSONSchemaPropsOrBool", "v1.JSONSchemaPropsOrStringArray", "v1beta1.JSONSchemaPropsOrArray", "v1beta1.JSONSchemaPropsOrBool", "v1beta1.JSONSchemaPropsOrStringArray":
		return "any"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64, reflect.Uint32, reflect.Uint64, reflect.Int:
		return t.Kind().String()
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + code(t.Elem())
	case reflect.Map:
		return "{}" + code(t.Elem())
	case reflect.Ptr:
		return code(t.Elem())
	case reflect.Struct:
		visit(t)
		return "@" + name(t)
	}
	panic(t.String())
}

// number returns the number of a field in protobuf, after those of the embedded structs around it: `#2.7`. A letter follows for
// messages that differ from their JSON form.
func number(f reflect.StructField, around string) string {
	tag := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(tag) < 2 {
		return around
	}
	return around + map[bool]string{true: "#", false: "."}[around == ""] + tag[1]
}

// union returns the kind of a schema that is one of several types.
func union(t reflect.Type) string {
	if t.Kind() == reflect.Ptr || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		return union(t.Elem())
	}
	return map[string]string{"JSONSchemaPropsOrArray": "a", "JSONSchemaPropsOrBool": "b", "JSONSchemaPropsOrStringArray": "s"}[t.Name()]
}

func fields(t reflect.Type, prefix, around string) [][]string {
	out := [][]string{}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if tag[0] == "-" || f.PkgPath != "" {
			continue
		}
		if f.Anonymous && tag[0] == "" {
			embedded := fields(f.Type, prefix+f.Name+": ", number(f, around))
			if f.Tag.Get("protobuf") == "" {
				// The envelope has the kind and the version; the message does not.
				for _, it := range embedded {
					it[2] = strings.Split(it[2], "#")[0]
				}
			}
			out = append(out, embedded...)
			continue
		}
		flags := ""
		for _, o := range tag[1:] {
			// Structs are omitted only with `omitzero`.
			if o == "omitzero" || o == "omitempty" && f.Type.Kind() != reflect.Struct {
				flags = "?"
			}
		}
		if f.Type.Kind() == reflect.Ptr {
			flags += "*"
		}
		n := tag[0]
		if n == "" {
			n = f.Name
		}
		own := ""
		if f.Tag.Get("protobuf") != "" {
			own = number(f, around) + union(f.Type)
		}
		out = append(out, []string{n, prefix + f.Name, flags + code(f.Type) + own})
	}
	return out
}

func visit(t reflect.Type) {
	n := name(t)
	if _, ok := types[n]; ok {
		return
	}
	entry := map[string]interface{}{"go": t.String()}
	types[n] = entry
	entry["fields"] = fields(t, "", "")
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "bodies" {
		bodies()
		return
	}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistration.AddToScheme, apps.AddToScheme, authentication.AddToScheme, authorization.AddToScheme, autoscalingold.AddToScheme,
		autoscaling.AddToScheme, batch.AddToScheme, certificates.AddToScheme, coordination.AddToScheme, core.AddToScheme,
		discovery.AddToScheme, events.AddToScheme, flowcontrol.AddToScheme, networking.AddToScheme, node.AddToScheme,
		policy.AddToScheme, rbac.AddToScheme, resource.AddToScheme, scheduling.AddToScheme, storage.AddToScheme,
		crd.AddToScheme, registration.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for gvk, t := range s.AllKnownTypes() {
		if gvk.Version == "__internal" || strings.HasSuffix(gvk.Kind, "Options") {
			continue
		}
		visit(t)
	}
	if err := json.NewEncoder(os.Stdout).Encode(types); err != nil {
		panic(err)
	}
}
