// Package network puts the network adapter of a VM where the cluster is: on the bridge of
// kind's containers. It finds that bridge and a free address, makes the VM's tap device,
// and reads your machine's firewall to name the rule that is in the way of the
// connections that a Kubernetes node needs.
//
//   - dockernet.go: the bridge, subnet and addresses of a Docker network
//   - tap_linux.go: the tap device
//   - firewall.go: the way of a packet through the firewall; rule.go: one rule of it
//   - check.go: findings about all of it
package network
