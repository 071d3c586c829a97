package doctor

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// credentials gathers kubelet's API server, the CA that kubelet trusts, and the validity of
// kubelet's certificates. It keeps neither keys nor tokens.
func (g *gatherer) credentials(ctx context.Context) error {
	conf, content, err := g.kubeconfig(ctx)
	g.facts.Kubeconfig = factOf(conf, err)
	if err != nil {
		g.facts.Certificates = Fact[[]Certificate]{Unknown: err.Error()}
		return err
	}
	certificates, err := g.certificates(ctx, content)
	g.facts.Certificates = factOf(certificates, err)
	return errors.Join(err, g.reach(ctx, conf))
}

func (g *gatherer) kubeconfig(ctx context.Context) (Kubeconfig, *clientcmdapi.Config, error) {
	var conf Kubeconfig
	path := cmp.Or(onDrive(g.facts.flag("kubeconfig")), kubeletConf)
	bootstrapPath := cmp.Or(onDrive(g.facts.flag("bootstrap-kubeconfig")), bootstrapConf)
	bootstrap, err := g.file(ctx, bootstrapPath)
	if err != nil {
		return conf, nil, err
	}
	if bootstrap != nil {
		conf.Bootstrap = true
		if config, err := clientcmd.Load(bootstrap); err == nil {
			conf.BootstrapServer = serverOf(config).Server
		}
	}
	text, err := g.file(ctx, path)
	if err != nil || text == nil {
		return conf, nil, err
	}
	conf.Exists = true
	config, err := clientcmd.Load(text)
	if err != nil {
		conf.Problem = fmt.Sprintf("%s: %v", path, windowstext.ExplainYAML(text, "kubelet", err))
		return conf, nil, nil
	}
	server := serverOf(config)
	conf.Server = server.Server
	authority := server.CertificateAuthorityData
	if len(authority) == 0 && server.CertificateAuthority != "" {
		if authority, err = g.file(ctx, onDrive(server.CertificateAuthority)); err != nil {
			return conf, config, err
		}
	}
	for _, certificate := range parsed(authority) {
		conf.CAHashes = append(conf.CAHashes, cluster.PublicKeyHash(certificate))
	}
	return conf, config, nil
}

// file returns a file's content, or nil if the file does not exist.
func (g *gatherer) file(ctx context.Context, path string) ([]byte, error) {
	content, err := smallfile.Read(ctx, g.Node, path)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// serverOf returns the cluster of the current context, or else the cluster whose name sorts first.
func serverOf(config *clientcmdapi.Config) (server clientcmdapi.Cluster) {
	if c := named(config.Clusters, contextOf(config).Cluster); c != nil {
		server = *c
	}
	return server
}

// userOf returns the user of the current context, or else the user whose name sorts first.
func userOf(config *clientcmdapi.Config) (user clientcmdapi.AuthInfo) {
	if config == nil {
		return user
	}
	if u := named(config.AuthInfos, contextOf(config).AuthInfo); u != nil {
		user = *u
	}
	return user
}

func contextOf(config *clientcmdapi.Config) (current clientcmdapi.Context) {
	if c := config.Contexts[config.CurrentContext]; c != nil {
		current = *c
	}
	return current
}

// named returns the value with this name. If no value has the name, it returns the value whose
// name sorts first, or nil if there are no values.
func named[T any](all map[string]*T, name string) *T {
	if one, ok := all[name]; ok {
		return one
	}
	for _, first := range slices.Sorted(maps.Keys(all)) {
		return all[first]
	}
	return nil
}

// certificates returns kubelet's own certificates, and the certificate of the CA that
// kubelet trusts.
func (g *gatherer) certificates(ctx context.Context, config *clientcmdapi.Config) ([]Certificate, error) {
	all := []Certificate{}
	for _, at := range []struct{ use, path string }{
		{"client", g.certificatePath(config)},
		{"serving", cmp.Or(onDrive(g.facts.flag("cert-dir")), certFolder) + `\kubelet.crt`},
		{"authority", clusterCA},
	} {
		content, err := g.file(ctx, at.path)
		if err != nil {
			return nil, err
		}
		if at.use == "client" && content == nil {
			content = userOf(config).ClientCertificateData
		}
		for _, certificate := range parsed(content) {
			all = append(all, Certificate{Path: at.path, Use: at.use, Subject: certificate.Subject.String(),
				NotAfter: certificate.NotAfter})
			break // the later certificates belong to the authorities that signed the first one
		}
	}
	return all, nil
}

// certificatePath returns the path of kubelet's client certificate.
func (g *gatherer) certificatePath(config *clientcmdapi.Config) string {
	if path := userOf(config).ClientCertificate; path != "" {
		return onDrive(path)
	}
	return cmp.Or(onDrive(g.facts.flag("cert-dir")), certFolder) + `\kubelet-client-current.pem`
}

// parsed returns the certificates in PEM text, and skips other blocks, such as keys.
func parsed(text []byte) (all []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, certificate)
		}
	}
	return all
}

// reach makes the node connect to kubelet's API server, and gathers the result.
func (g *gatherer) reach(ctx context.Context, conf Kubeconfig) error {
	server := cmp.Or(conf.Server, conf.BootstrapServer)
	if server == "" {
		g.facts.Reached.Unknown = "kubelet has no API server"
		return nil
	}
	r, err := g.look.Reach(ctx, "the server in kubelet.conf", hostPort(server))
	g.facts.Reached = factOf(one(r), err)
	return err
}

// hostPort returns host:port of a URL, or server unchanged if server is not a URL.
func hostPort(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return server
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}

// hostOf returns the host of a URL.
func hostOf(server string) string {
	name, _, err := net.SplitHostPort(hostPort(server))
	if err != nil {
		return server
	}
	return strings.ToLower(name)
}
