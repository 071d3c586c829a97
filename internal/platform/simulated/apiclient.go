package simulated

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// apiTimeout limits one request of a simulated program to an API server.
const apiTimeout = 10 * time.Second

// apiClient is the client that the machine's kubeadm and kubelet use to call an API server. It uses
// real HTTPS, and resolves names as the machine does. The few requests of kubeadm and kubelet need
// only JSON.
type apiClient struct {
	server string
	token  string
	http   *http.Client
}

// apiError is an API server's refusal.
type apiError struct {
	Code    int
	Message string
}

func (e *apiError) Error() string { return e.Message }

func isStatus(err error, code int) bool {
	var refused *apiError
	return errors.As(err, &refused) && refused.Code == code
}

// newAPIClient returns a client that trusts ca; if ca is nil, it trusts any
// server.
func (p *Process) newAPIClient(server string, ca []byte, token string, certificates ...tls.Certificate) *apiClient {
	config := &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12}
	if ca == nil {
		config.InsecureSkipVerify = true // as kubeadm does before it has verified the cluster's CA
	} else {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(ca)
	}
	transport := &http.Transport{
		TLSClientConfig: config,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return p.p.connect(ctx, address)
		},
	}
	return &apiClient{server: strings.TrimSuffix(server, "/"), token: token,
		http: &http.Client{Transport: transport, Timeout: apiTimeout}}
}

func (c *apiClient) close() { c.http.CloseIdleConnections() }

const (
	jsonType           = "application/json"
	mergePatchType     = "application/merge-patch+json"
	strategicPatchType = "application/strategic-merge-patch+json"
)

// do makes one request. It decodes the reply into `into`, unless into is nil.
func (c *apiClient) do(ctx context.Context, method, path, contentType string, body, into any) error {
	var data io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		data = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, data)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", jsonType)
	request.Header.Set("Content-Type", contentType)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		refused := &apiError{}
		if json.Unmarshal(text, refused) != nil || refused.Message == "" {
			refused.Message = response.Status
		}
		refused.Code = response.StatusCode
		return refused
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}

func (c *apiClient) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, jsonType, nil, into)
}

// configMap returns the data of a ConfigMap.
func (c *apiClient) configMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	var o struct{ Data map[string]string }
	err := c.get(ctx, "/api/v1/namespaces/"+namespace+"/configmaps/"+name, &o)
	return o.Data, err
}

// kubeconfig has the parts of a kubeconfig that kubeadm and kubelet write and read.
type kubeconfig struct {
	server      string
	ca          []byte
	token       string
	certificate string // path of a file with certificate and key
	user        string
}

type kubeconfigFile struct {
	APIVersion     string            `yaml:"apiVersion"`
	Kind           string            `yaml:"kind"`
	CurrentContext string            `yaml:"current-context,omitempty"`
	Clusters       []kubeconfigEntry `yaml:"clusters"`
	Contexts       []kubeconfigEntry `yaml:"contexts,omitempty"`
	Users          []kubeconfigEntry `yaml:"users,omitempty"`
}

type kubeconfigEntry struct {
	Name    string            `yaml:"name"`
	Cluster map[string]string `yaml:"cluster,omitempty"`
	Context map[string]string `yaml:"context,omitempty"`
	User    map[string]string `yaml:"user,omitempty"`
}

// parseKubeconfig reads the first cluster and the first user. A kubeconfig that kubeadm or kubelet
// writes has no others.
func parseKubeconfig(text []byte) (kubeconfig, error) {
	var file kubeconfigFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		return kubeconfig{}, fmt.Errorf("read a kubeconfig: %w", err)
	}
	if len(file.Clusters) == 0 {
		return kubeconfig{}, errors.New("read a kubeconfig: it has no cluster")
	}
	cluster := file.Clusters[0].Cluster
	ca, err := base64.StdEncoding.DecodeString(cluster["certificate-authority-data"])
	if err != nil {
		return kubeconfig{}, fmt.Errorf("read a kubeconfig: certificate-authority-data: %w", err)
	}
	k := kubeconfig{server: cluster["server"], ca: ca}
	if len(file.Users) > 0 {
		k.token, k.certificate = file.Users[0].User["token"], file.Users[0].User["client-certificate"]
	}
	return k, nil
}

func (k kubeconfig) format() ([]byte, error) {
	user := map[string]string{}
	if k.token != "" {
		user["token"] = k.token
	}
	if k.certificate != "" {
		user["client-certificate"], user["client-key"] = k.certificate, k.certificate
	}
	return yaml.Marshal(kubeconfigFile{
		APIVersion: "v1", Kind: "Config", CurrentContext: k.user + "@kubernetes",
		Clusters: []kubeconfigEntry{{Name: "kubernetes", Cluster: map[string]string{
			"server": k.server, "certificate-authority-data": base64.StdEncoding.EncodeToString(k.ca),
		}}},
		Contexts: []kubeconfigEntry{{Name: k.user + "@kubernetes", Context: map[string]string{"cluster": "kubernetes",
			"user": k.user}}},
		Users: []kubeconfigEntry{{Name: k.user, User: user}},
	})
}
