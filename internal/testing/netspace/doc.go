// Package netspace gives tests networks of their own: they make bridges, machines and firewall
// rules with root's rights that end at the test's own network, and need none on your machine.
package netspace
