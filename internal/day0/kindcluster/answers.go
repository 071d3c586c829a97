package kindcluster

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui"
)

// mirrorLimit bounds the connection to one mirror.
const mirrorLimit = 3 * time.Second

// connect is a script for a node's shell. It prints the exit code of curl for the URL in its only
// argument, whatever the HTTP status is.
const connect = `curl --silent --output /dev/null --max-time %d "$1"; echo $?`

// warnOfMirrors warns of each mirror of the document that does not answer a Linux node. Pulls still
// work without a mirror, if the registry itself can be reached, so this is no error.
func (c *Clusters) warnOfMirrors(ctx context.Context, doc config.ClusterDocument, name string, r ui.Reporter) {
	mirrors := doc.Cluster.Spec.ControlPlane.Kind.RegistryMirrors
	if len(mirrors) == 0 {
		return
	}
	containers, err := c.kind.ListNodes(name)
	if err != nil || len(containers) == 0 {
		return
	}
	node := slices.MinFunc(containers, func(a, b nodes.Node) int { return strings.Compare(a.String(), b.String()) })
	for i, mirror := range mirrors {
		for j, endpoint := range mirror.Endpoints {
			why := silent(ctx, node, endpoint)
			if why == "" {
				continue
			}
			problem := doc.Problem(fmt.Sprintf("spec.controlPlane.kind.registryMirrors[%d].endpoints[%d]", i, j),
				fmt.Sprintf("the mirror %s of %s does not answer %s: %s", endpoint, mirror.Registry, node, why),
				"start the mirror, or correct its URL; until then, each pull first tries it, and then the registry itself")
			r.Warn("%s", problem)
		}
	}
}

// silent returns the reason why a mirror does not answer a node. It returns "" if the mirror answers,
// or if the node cannot test the mirror.
func silent(ctx context.Context, node nodes.Node, endpoint string) string {
	ctx, cancel := context.WithTimeout(ctx, 2*mirrorLimit)
	defer cancel()
	u, err := url.Parse(endpoint)
	if err != nil {
		return "" // validation has already reported a wrong URL
	}
	script := fmt.Sprintf(connect, int(mirrorLimit.Seconds()))
	var out bytes.Buffer
	command := node.CommandContext(ctx, "sh", "-c", script, "sh", u.JoinPath("/").String())
	if err := command.SetStdout(&out).Run(); err != nil {
		return ""
	}
	code, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		return ""
	}
	// https://curl.se/libcurl/c/libcurl-errors.html
	return map[int]string{
		6: "no DNS knows its name", 7: "nothing listens there", 28: "no answer within " + mirrorLimit.String(),
		35: "it does not speak TLS", 60: "the node does not trust its certificate",
	}[code]
}
