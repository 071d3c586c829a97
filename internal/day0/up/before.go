package up

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/existing"
)

// checkDocuments returns an error for mistakes that each document alone does not show. It changes and
// contacts nothing, so Up finds these mistakes before its first stage. If the mistake is in a
// document, the error is a *config.Error.
func (w *work) checkDocuments(ctx context.Context) error {
	problems := slices.Concat(addressProblems(w.cluster, w.documents), sameNodeProblems(w.documents), w.proxyProblems())
	if len(problems) > 0 {
		return &config.Error{Problems: problems}
	}
	if !w.wantsNetwork() {
		return nil
	}
	options, err := NetworkOptions(w.cluster)
	if err == nil {
		options.Mirror = w.Join.Mirror
		err = options.CheckManifests(ctx)
	}
	return manifestInDocument(w.cluster, err)
}

// wantsNetwork reports whether Up runs the stage that installs the pod network.
func (w *work) wantsNetwork() bool {
	return w.cluster.Cluster.Spec.Network.Plugin != v1alpha1.NoPlugin &&
		(len(w.Only) == 0 || slices.Contains(w.Only, Network))
}

// sameNodeProblems returns a problem for each node that has the name or the address of an earlier node
// in the cluster.
func sameNodeProblems(documents []config.Document) (problems []config.Problem) {
	first := map[string]config.Document{}
	for _, document := range documents {
		own := document.Node.Spec.Kubernetes.Join
		for _, value := range []struct{ field, text string }{{"nodeName", own.NodeName}, {"nodeIP", own.NodeIP}} {
			if value.text == "" {
				continue
			}
			key := value.field + " " + strings.ToLower(value.text)
			before, seen := first[key]
			if !seen {
				first[key] = document
				continue
			}
			problems = append(problems, document.Problem("spec.kubernetes.join."+value.field,
				fmt.Sprintf("%s is also that of node %s", value.text, before.Node.Metadata.Name),
				"give each node its own, or leave it out"))
		}
	}
	return problems
}

// proxyProblems returns a problem for each node whose kubelet would send its requests to the API server
// through a proxy, since spec.setup.environment sets the proxy and no exception for the API server.
func (w *work) proxyProblems() (problems []config.Problem) {
	for _, document := range w.documents {
		environment := document.Node.Spec.Setup.Environment
		set := func(name string) (value string) {
			for key, text := range environment { // Windows ignores the case of names
				if strings.EqualFold(key, name) {
					value = text
				}
			}
			return value
		}
		server := w.serverOf(document)
		if !wantsJoin(document) || server == "" || set("HTTPS_PROXY") == "" {
			continue
		}
		proxies := httpproxy.Config{HTTPSProxy: set("HTTPS_PROXY"), NoProxy: set("NO_PROXY")}
		proxy, err := proxies.ProxyFunc()(&url.URL{Scheme: "https", Host: server})
		if err != nil || proxy == nil {
			continue
		}
		host, _, _ := net.SplitHostPort(server)
		problems = append(problems, document.Problem("spec.setup.environment.HTTPS_PROXY",
			fmt.Sprintf("sends the kubelet's requests to the API server %s through the proxy, too", server),
			fmt.Sprintf("add %s to NO_PROXY there, and the ranges of the cluster's pods and Services", host)))
	}
	return problems
}

// serverOf returns the host:port at which a node will reach the API server; "" if only the cluster can
// reveal it.
func (w *work) serverOf(document config.Document) string {
	if endpoint := document.Node.Spec.Kubernetes.Join.ControlPlaneEndpoint; endpoint != "" {
		if _, _, err := net.SplitHostPort(endpoint); err != nil {
			return net.JoinHostPort(strings.Trim(endpoint, "[]"), "6443")
		}
		return endpoint
	}
	if !w.existing() {
		return net.JoinHostPort(w.name()+"-control-plane", "6443")
	}
	api, err := existing.Open(w.cluster)
	if err != nil {
		return "" // the stage of the cluster reports the error
	}
	return api.Endpoint()
}
