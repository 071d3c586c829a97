// Package network connects the network adapter of a VM to the network of the cluster: the bridge of
// kind's containers. It finds that bridge and a free address, makes the VM's tap device, and finds out whether
// your machine's firewall sees the connections that a Kubernetes node needs.
//
//   - dockernet.go: the bridge, subnet and addresses of a Docker network
//   - docker.go: requests to Docker's engine; prepare.go: the steps that make and remove networks
//   - place.go: a bridge with its subnet; links_linux.go: interfaces; tap_linux.go: the tap device
//   - wanted.go, cluster.go, firewall.go: findings about the bridge, the tap and the firewall
package network
