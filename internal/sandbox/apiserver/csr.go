package apiserver

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
)

const clientSigner = "kubernetes.io/kube-apiserver-client-kubelet"

// signRequest approves and signs the request of a joining kubelet for a client certificate of the
// node's user (pkg/controller/certificates, approver and signer; kubeadm binds the group of joining nodes to them). It leaves
// all other requests pending: kubelet-serving certificates have no approver in kubeadm's clusters.
func (c *Cluster) signRequest(event change) {
	if event.key.resource != "certificatesigningrequests.certificates.k8s.io" || event.before != nil {
		return
	}
	certificate, err := c.nodeCertificate(event.object)
	if err != nil {
		c.options.Log.Info("a certificate signing request is not signed", "name", event.key.name, "why", err)
		return
	}
	r, _ := c.resource("certificates.k8s.io", "v1", "certificatesigningrequests")
	_, _ = c.store.update(r, event.key, func(o object) (object, error) {
		o["status"] = object{
			"certificate": base64.StdEncoding.EncodeToString(certificate),
			"conditions": []any{object{
				"type": "Approved", "status": "True", "reason": "AutoApproved", "lastUpdateTime": timestamp(c.now()),
				"message": "Auto approving kubelet client certificate after SubjectAccessReview.",
			}},
		}
		return o, nil
	})
}

func (c *Cluster) nodeCertificate(o object) ([]byte, error) {
	if signer := text(o, "spec", "signerName"); signer != clientSigner {
		return nil, fmt.Errorf("there is no signer %q", signer)
	}
	data, err := base64.StdEncoding.DecodeString(text(o, "spec", "request"))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("the request is not PEM")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if err := request.CheckSignature(); err != nil {
		return nil, err
	}
	subject := request.Subject
	if !strings.HasPrefix(subject.CommonName, nodeUser) || !slices.Equal(subject.Organization, []string{groupNodes}) {
		return nil, fmt.Errorf("%s is not a node", subject)
	}
	return c.ca.sign(request.PublicKey, subject.CommonName, subject.Organization...)
}
