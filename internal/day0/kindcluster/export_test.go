package kindcluster

import (
	"net"

	"github.com/swdt-dev/swdt/internal/config"
)

// CheckSubnet is checkSubnet.
func CheckSubnet(doc config.ClusterDocument, field, subnet string, addresses []net.Addr) []config.Problem {
	return checkSubnet(doc, field, subnet, addresses)
}
