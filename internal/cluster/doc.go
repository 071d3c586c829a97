// Package cluster is everything swdt asks of a Kubernetes API server: nodes and
// what they wait for, bootstrap tokens, draining, and the facts that tell before
// a join whether it can work. It is the only package that knows client-go.
//
// Errors say what was attempted. Their kinds are ConfigError (no usable
// kubeconfig), UnreachableError (no answer), UnauthorizedError and
// ForbiddenError (an answer, but no).
package cluster
