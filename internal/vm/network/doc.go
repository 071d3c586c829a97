// Package network connects the network adapter of a VM to the network of the cluster: the bridge of
// kind's containers. It finds that bridge and a free address, makes the VM's tap device, and reads
// your machine's firewall to find the rules that stop the connections that a Kubernetes node needs.
//
//   - dockernet.go: the bridge, subnet and addresses of a Docker network
//   - docker.go: requests to Docker's engine; prepare.go: the steps that make and remove networks
//   - place.go: a bridge with its subnet; links_linux.go: interfaces; tap_linux.go: the tap device
//   - firewall.go: the way of a packet through the firewall; hook.go: the chains on that way
//   - rule.go: one rule of iptables; nftables.go: rules of nftables, nftvalue.go: their comparisons
//   - readfirewall.go: asks iptables-save and nft; remedy.go: commands that let packets through
//   - wanted.go, cluster.go, check.go: findings about the bridge, the tap and the firewall
package network
