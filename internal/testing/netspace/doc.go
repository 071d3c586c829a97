// Package netspace runs tests in separate network namespaces. In such a namespace, a test may make
// bridges, machines and firewall rules with root's rights. On your machine, the test needs no such
// rights unless it calls EnterAsRoot.
package netspace
