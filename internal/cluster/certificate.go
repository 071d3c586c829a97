package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// ExpiredError reports that the client certificate of the kubeconfig is not valid any more.
type ExpiredError struct {
	Server string
	Since  time.Time
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the client certificate in the kubeconfig for %s has expired on %s; get a new kubeconfig of an "+
		"administrator (kubeadm certs renew admin.conf, on the control plane)", e.Server, e.Since.UTC().Format(time.RFC3339))
}

// CheckCredentials returns an *ExpiredError if the client certificate of the kubeconfig has expired at
// the time now. It contacts nothing, and accepts all other credentials.
func (c *Cluster) CheckCredentials(now time.Time) error {
	if c.config == nil {
		return nil
	}
	text := c.config.CertData
	if len(text) == 0 && c.config.CertFile != "" {
		var err error
		if text, err = os.ReadFile(c.config.CertFile); err != nil {
			return fmt.Errorf("read the kubeconfig's client certificate: %w", err)
		}
	}
	if len(text) == 0 {
		return nil
	}
	chain, err := cert.ParseCertsPEM(text)
	if err != nil {
		return fmt.Errorf("read the kubeconfig's client certificate: %w", err)
	}
	if until := chain[0].NotAfter; now.After(until) {
		return &ExpiredError{Server: c.server, Since: until}
	}
	return nil
}

// certificateLimit bounds the connection of MissingName.
const certificateLimit = 2 * time.Second

// MissingName connects to the API server at address, a host:port, and checks that its certificate
// contains name, by which nodes will call it. If the certificate does not contain name, the result is
// all names and addresses in the certificate. If it does, the result is empty. The error is
// errors.ErrUnsupported if the kubeconfig does not verify certificates, or if there is no kubeconfig.
func (c *Cluster) MissingName(ctx context.Context, name, address string) (names []string, err error) {
	if c.config == nil || c.config.Insecure {
		return nil, errors.ErrUnsupported
	}
	config, err := rest.TLSConfigFor(c.config)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig's CA: %w", err)
	}
	if config == nil { // the API server is not reached by TLS
		return nil, errors.ErrUnsupported
	}
	config.ServerName, config.NextProtos = name, nil
	ctx, cancel := context.WithTimeout(ctx, certificateLimit)
	defer cancel()
	conn, err := c.dialTLS(ctx, address, config)
	var other x509.HostnameError
	switch {
	case err == nil:
		return nil, conn.Close()
	case errors.As(err, &other):
		return namesOf(other.Certificate), nil
	}
	return nil, fmt.Errorf("look at the certificate of the API server at %s: %w", address, err)
}

func (c *Cluster) dialTLS(ctx context.Context, address string, config *tls.Config) (*tls.Conn, error) {
	dial := c.config.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// namesOf returns the names and addresses in a certificate. The result is never empty.
func namesOf(certificate *x509.Certificate) []string {
	names := append([]string{}, certificate.DNSNames...)
	for _, ip := range certificate.IPAddresses {
		names = append(names, net.IP(ip).String())
	}
	if len(names) == 0 {
		return []string{certificate.Subject.String()}
	}
	return names
}
