// The operator of scripts/verify-reconcile, written by hand with controller-runtime as its documentation shows it: up to three children
// of each object by CreateOrUpdate, owned by it, and their number in its status. Deletions of children that are not wanted any more,
// which kopf.reconcile has, are left out.
package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Spec is the wanted state.
type Spec struct {
	Children int    `json:"children"`
	Image    string `json:"image"`
}

// Status is the observed state.
type Status struct {
	Children int `json:"children,omitempty"`
}

// KopfExample is a parent.
type KopfExample struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec,omitempty"`
	Status            Status `json:"status,omitempty"`
}

// KopfExampleList is a list of parents.
type KopfExampleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KopfExample `json:"items"`
}

// DeepCopyObject returns a copy.
func (in *KopfExample) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject returns a copy.
func (in *KopfExampleList) DeepCopyObject() runtime.Object {
	out := *in
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]KopfExample, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*KopfExample)
	}
	return &out
}

type reconciler struct {
	client.Client
	scheme *runtime.Scheme
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var parent KopfExample
	if err := r.Get(ctx, request.NamespacedName, &parent); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !parent.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	for _, child := range children(&parent) {
		wanted := child.DeepCopyObject().(client.Object)
		result, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
			merge(child, wanted)
			return controllerutil.SetControllerReference(&parent, child, r.scheme)
		})
		if err != nil {
			return ctrl.Result{}, fmt.Errorf("apply %s: %w", child.GetName(), err)
		}
		if result != controllerutil.OperationResultNone {
			log.FromContext(ctx).V(1).Info("applied", "child", child.GetName(), "result", result)
		}
	}
	if parent.Status.Children != parent.Spec.Children {
		parent.Status.Children = parent.Spec.Children
		return ctrl.Result{}, r.Status().Update(ctx, &parent)
	}
	return ctrl.Result{}, nil
}

// children returns the wanted children of an object, as many as its spec says.
func children(parent *KopfExample) []client.Object {
	meta := metav1.ObjectMeta{Name: parent.Name, Namespace: parent.Namespace}
	labels := map[string]string{"app": parent.Name}
	one := int32(1)
	all := []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"image": parent.Spec.Image, "name": parent.Name}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: &one,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: parent.Spec.Image}}},
			},
		}},
	}
	return all[:min(parent.Spec.Children, len(all))]
}

// merge sets the fields of a child that must have a certain value, and keeps what the server has added.
func merge(child, wanted client.Object) {
	switch child := child.(type) {
	case *corev1.ConfigMap:
		child.Data = wanted.(*corev1.ConfigMap).Data
	case *appsv1.Deployment:
		wanted := wanted.(*appsv1.Deployment)
		child.Spec.Replicas = wanted.Spec.Replicas
		child.Spec.Selector = wanted.Spec.Selector
		child.Spec.Template.Labels = wanted.Spec.Template.Labels
		if len(child.Spec.Template.Spec.Containers) != 1 {
			child.Spec.Template.Spec.Containers = wanted.Spec.Template.Spec.Containers
		}
		child.Spec.Template.Spec.Containers[0].Name = wanted.Spec.Template.Spec.Containers[0].Name
		child.Spec.Template.Spec.Containers[0].Image = wanted.Spec.Template.Spec.Containers[0].Image
	}
}

func run() error {
	group := schema.GroupVersion{Group: "kopf.dev", Version: "v1"}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(group, &KopfExample{}, &KopfExampleList{})
	metav1.AddToGroupVersion(scheme, group)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // no limit of its own
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&KopfExample{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.ServiceAccount{}).
		Owns(&appsv1.Deployment{}).
		Complete(&reconciler{manager.GetClient(), scheme})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
