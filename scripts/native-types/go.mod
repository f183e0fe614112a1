module native-types
go 1.15
require (
 k8s.io/api v0.20.2
 k8s.io/apimachinery v0.20.2
 k8s.io/apiextensions-apiserver v0.20.2
)
