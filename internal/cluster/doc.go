// Package cluster makes all of swdt's requests to a Kubernetes API server. It reads Nodes
// and waits for them, makes bootstrap tokens, drains nodes, and collects the facts that
// show before a join whether the join can succeed. Other packages get client-go's clients from a
// Cluster.
//
// Errors name the attempted action. Their kinds are ConfigError (no usable kubeconfig),
// CredentialError (no credentials to ask with), UnreachableError (no answer), UnauthorizedError and
// ForbiddenError (a refusal).
package cluster
