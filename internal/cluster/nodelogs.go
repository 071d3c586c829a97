package cluster

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// LogsDisabledError reports that the kubelet does not serve its machine's logs.
type LogsDisabledError struct{ Node string }

func (e *LogsDisabledError) Error() string {
	return fmt.Sprintf("read the logs of node %s through the API server: its kubelet does not serve them; "+
		"set enableSystemLogHandler: true and enableDebuggingHandlers: true in the kubelet's configuration", e.Node)
}

// NodeLogs requests logs from a node's kubelet, through the API server. It returns a
// file or folder under the node's /var/log (a folder is returned as HTML), or the logs
// that query selects, for which the kubelet needs NodeLogQuery. byteRange is an HTTP
// Range; empty: all. If the file does not exist, apierrors.IsNotFound is true for the
// error.
func (c *Cluster) NodeLogs(ctx context.Context, node, file string, query url.Values, byteRange string) (io.ReadCloser,
	error) {
	doing := "read the logs of node " + node + " through the API server"
	where := path.Join("/api/v1/nodes", node, "proxy/logs", file)
	if file == "" || file[len(file)-1] == '/' {
		where += "/" // without the slash, the kubelet redirects to an address that the proxy does not serve
	}
	request := c.client.CoreV1().RESTClient().Get().AbsPath(where)
	for name, values := range query {
		for _, value := range values {
			request.Param(name, value)
		}
	}
	if byteRange != "" {
		request.SetHeader("Range", byteRange)
	}
	body, err := request.Stream(ctx)
	if apierrors.IsMethodNotSupported(err) {
		return nil, &LogsDisabledError{Node: node}
	}
	switch {
	case noNode(err):
		return nil, &NoNodeError{Node: node}
	case apierrors.IsNotFound(err):
		return nil, err
	}
	return body, c.fail(doing, Permission{Verb: "get", Resource: "nodes/proxy"}, err)
}
