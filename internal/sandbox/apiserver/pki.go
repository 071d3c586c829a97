package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"sigs.k8s.io/yaml"
)

// certificateLife is how long certificates are valid. They are valid from certificateSlop before
// now, so that clocks may differ.
const (
	certificateLife = 365 * 24 * time.Hour
	certificateSlop = 24 * time.Hour
)

// authority is the cluster's CA.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key, pem: encode("CERTIFICATE", der)}, nil
}

func template(name string, groups ...string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 62))
	if err != nil {
		serial = big.NewInt(time.Now().UnixNano())
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: time.Now().Add(-certificateSlop), NotAfter: time.Now().Add(certificateLife),
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// hash returns the hash of the CA's public key.
func (a *authority) hash() string {
	sum := sha256.Sum256(a.certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// serverConfig returns the TLS configuration of the API server for these names and addresses.
func (a *authority) serverConfig(names []string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template("kube-apiserver")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.VerifyClientCertIfGiven, ClientCAs: a.pool(), MinVersion: tls.VersionTLS12,
	}, nil
}

// client creates a client's certificate and key, as PEM.
func (a *authority) client(name string, groups ...string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	certificate, err = a.sign(private.Public(), name, groups...)
	return certificate, encode("EC PRIVATE KEY", der), err
}

func (a *authority) sign(public any, name string, groups ...string) ([]byte, error) {
	template := template(name, groups...)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %s: %w", name, err)
	}
	return encode("CERTIFICATE", der), nil
}

// kubeconfig returns a kubeconfig with one cluster, user and context.
func kubeconfig(server string, ca, certificate, key []byte) ([]byte, error) {
	user := map[string]any{}
	if certificate != nil {
		user["client-certificate-data"], user["client-key-data"] = certificate, key
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "simulated",
		"clusters": []any{map[string]any{"name": "simulated", "cluster": map[string]any{
			"server": server, "certificate-authority-data": ca,
		}}},
		"users": []any{map[string]any{"name": "admin", "user": user}},
		"contexts": []any{map[string]any{"name": "simulated", "context": map[string]any{"cluster": "simulated",
			"user": "admin"}}},
	})
}
