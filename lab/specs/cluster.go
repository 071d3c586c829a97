package main

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
	"net/http"
	"os"
	"regexp"
)

// makeNamespace makes a namespace with the labels of e2e.test.
func makeNamespace(ctx context.Context, base string) (string, error) {
	name := namespaceName(base)
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": name, "labels": map[string]string{"e2e-run": runID, "e2e-framework": base}}})
	if err != nil {
		return "", err
	}
	return name, request(ctx, http.MethodPost, "/api/v1/namespaces", body)
}

func deleteNamespace(ctx context.Context, name string) error {
	return request(ctx, http.MethodDelete, "/api/v1/namespaces/"+name, nil)
}

// request sends a request to the API server of the kubeconfig, which must have all certificates in it.
func request(ctx context.Context, method, path string, body []byte) error {
	text, err := os.ReadFile(*kubeconfig)
	if err != nil {
		return err
	}
	ca, err := value(text, "certificate-authority-data")
	if err != nil {
		return err
	}
	certificate, err := value(text, "client-certificate-data")
	if err != nil {
		return err
	}
	key, err := value(text, "client-key-data")
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	server := regexp.MustCompile(`server"?:\s*"?(https://[^\s",]+)`).FindSubmatch(text)
	if server == nil {
		return errors.New("the kubeconfig has no server")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots,
		Certificates: []tls.Certificate{pair}}}}
	r, err := http.NewRequestWithContext(ctx, method, string(server[1])+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, why)
	}
	return nil
}

// value returns the decoded value of a key of the kubeconfig.
func value(text []byte, key string) ([]byte, error) {
	found := regexp.MustCompile(key + `"?:\s*"?([A-Za-z0-9+/=]+)`).FindSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("the kubeconfig has no %s", key)
	}
	return base64.StdEncoding.DecodeString(string(found[1]))
}
