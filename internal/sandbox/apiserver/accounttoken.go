package apiserver

import (
	"encoding/base64"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
)

// accountTokenLength is the number of random characters of an account's token.
const accountTokenLength = 32

// fillToken gives a Secret of type service-account-token the token and the CA, as the token controller does
// (k8s.io/kubernetes v1.36.3, pkg/controller/serviceaccount/tokens_controller.go, generateTokenIfNeeded). If the account
// does not exist, fillToken deletes the Secret, as that controller does. No request is authenticated by this token.
func (c *Cluster) fillToken(event change) {
	if event.key.resource != "secrets" || event.before != nil || event.object == nil ||
		text(event.object, "type") != string(corev1.SecretTypeServiceAccountToken) {
		return
	}
	r, _ := c.resource("", "v1", "secrets")
	account := texts(event.object, "metadata", "annotations")[corev1.ServiceAccountNameKey]
	if _, exists := c.store.get(key{"serviceaccounts", event.key.namespace, account}); !exists {
		_ = c.remove(r, event.key, metav1.DeleteOptions{})
		return
	}
	_, _ = c.store.update(r, event.key, func(o object) (object, error) {
		encode := func(text []byte) string { return base64.StdEncoding.EncodeToString(text) }
		o["data"] = object{
			corev1.ServiceAccountTokenKey:     encode([]byte("invented-" + rand.String(accountTokenLength))),
			corev1.ServiceAccountRootCAKey:    encode(c.ca.pem),
			corev1.ServiceAccountNamespaceKey: encode([]byte(event.key.namespace)),
		}
		return o, nil
	})
}
