//go:build tools

// Package tools names the program that scripts/verify-olm builds.
package tools

import _ "github.com/operator-framework/api/cmd/operator-verify/manifests"
