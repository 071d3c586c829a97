// Package policy computes which connections between pods NetworkPolicies allow, as Kubernetes defines
// them. It contacts nothing.
//
//   - policy.go: a set of policies, and its verdict on a connection
//   - compile.go: from NetworkPolicy objects to rules, with validation
//
// A connection passes if both of its sides let it pass: the source's egress and the target's ingress. A
// side without a policy that selects its pod lets everything pass. Otherwise one of these policies must
// have a rule that allows the connection. A pod always reaches itself.
//
// ADR 39 has the reasons for an engine of our own. The tests compare it with a second, slow evaluator
// that is written from the definition, on random policies.
package policy
