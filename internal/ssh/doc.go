// Package ssh reaches a Windows node from the developer's machine: route,
// trust, log in, keep alive; then commands and SFTP on that one connection.
//
//   - route.go: what the node file and ~/.ssh/config say, as a list of hops
//   - dial.go: hop after hop, each bounded in time
//   - hostkey.go: whether the machine that answered is the one that is meant
//   - auth.go, keys.go, keyring.go: who we are
//   - client.go, process.go: what can be done on the connection
//   - errors.go: one type for each cause, each with its remedy
//
// Nothing is sent to a machine before its host key is trusted. What is Windows
// about the node is package node's concern.
package ssh
