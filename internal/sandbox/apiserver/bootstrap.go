package apiserver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	clusterInfoName   = "cluster-info"
	kubeletConfigName = "kubelet-config"
	kubeadmConfigName = "kubeadm-config"
	tokenType         = "bootstrap.kubernetes.io/token"
	tokenPrefix       = "bootstrap-token-"
	signaturePrefix   = "jws-kubeconfig-"
)

// bootstrapToken is a Secret in kube-system that lets nodes join: "Authenticating with Bootstrap Tokens" on kubernetes.io;
// signer and cleaner are those of pkg/controller/bootstrap.
type bootstrapToken struct {
	id, secret              string
	authentication, signing bool
	groups                  []string
	expires                 time.Time // zero: never
}

// token returns the bootstrap token with this ID if it has not expired.
func (c *Cluster) token(id string) (bootstrapToken, bool) {
	o, ok := c.store.get(key{"secrets", "kube-system", tokenPrefix + id})
	if !ok {
		return bootstrapToken{}, false
	}
	t, ok := readToken(o)
	return t, ok && t.id == id && !t.expired(c.now())
}

func (t bootstrapToken) expired(now time.Time) bool {
	return !t.expires.IsZero() && !now.Before(t.expires)
}

func readToken(o object) (bootstrapToken, bool) {
	if text(o, "type") != tokenType {
		return bootstrapToken{}, false
	}
	data := func(name string) string {
		if plain := text(o, "stringData", name); plain != "" {
			return plain
		}
		decoded, err := base64.StdEncoding.DecodeString(text(o, "data", name))
		if err != nil {
			return ""
		}
		return string(decoded)
	}
	t := bootstrapToken{
		id: data("token-id"), secret: data("token-secret"),
		authentication: data("usage-bootstrap-authentication") == "true",
		signing:        data("usage-bootstrap-signing") == "true",
	}
	for group := range strings.SplitSeq(data("auth-extra-groups"), ",") {
		if strings.HasPrefix(group, groupBootstrappers+":") {
			t.groups = append(t.groups, group)
		}
	}
	if expiration := data("expiration"); expiration != "" {
		when, err := time.Parse(time.RFC3339, expiration)
		if err != nil {
			return bootstrapToken{}, false
		}
		t.expires = when
	}
	return t, t.id != "" && t.secret != ""
}

// expireTokens removes expired tokens, as the token cleaner does, and signs cluster-info
// with the remaining tokens, as the bootstrap signer does.
func (c *Cluster) expireTokens(ctx context.Context) {
	for {
		_, version := c.store.list("secrets", "kube-system")
		_, changed, _ := c.store.since(version)
		next := c.signAndClean()
		if changed == nil {
			continue
		}
		timer := time.NewTimer(next)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// tokenLook is the longest time between two checks of the tokens. It is short because a test may
// set the server's clock between two checks.
const tokenLook = time.Second

// signAndClean signs cluster-info and removes expired tokens. It returns the time until the next
// token expires, at most tokenLook.
func (c *Cluster) signAndClean() time.Duration {
	next, now := tokenLook, c.now()
	tokens := []bootstrapToken{}
	secrets, _ := c.store.list("secrets", "kube-system")
	for _, o := range secrets {
		t, ok := readToken(o)
		switch {
		case !ok:
		case t.expired(now):
			_ = c.remove(Resource{Version: "v1", Name: "secrets", Kind: "Secret", Namespaced: true},
				key{"secrets", "kube-system", text(o, "metadata", "name")}, metav1.DeleteOptions{})
		default:
			tokens = append(tokens, t)
			if left := t.expires.Sub(now); !t.expires.IsZero() && left < next {
				next = left
			}
		}
	}
	c.sign(tokens)
	return next
}

// sign adds a signature of every token to cluster-info and removes all other signatures.
func (c *Cluster) sign(tokens []bootstrapToken) {
	r := Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Namespaced: true}
	_, _ = c.store.update(r, key{"configmaps", "kube-public", clusterInfoName}, func(o object) (object, error) {
		data, ok := o["data"].(object)
		if !ok {
			return o, nil // a client has damaged the object, so there is nothing to sign
		}
		for name := range data {
			if strings.HasPrefix(name, signaturePrefix) {
				delete(data, name)
			}
		}
		for _, t := range tokens {
			if t.signing {
				data[signaturePrefix+t.id] = signature(text(o, "data", "kubeconfig"), t)
			}
		}
		return o, nil
	})
}

// signature returns the JSON Web Signature of content, without the content. kubeadm computes the
// signature again and compares all bytes. (k8s.io/cluster-bootstrap/token/jws would need a whole
// JOSE library to compute it.)
func signature(content string, t bootstrapToken) string {
	encode := base64.RawURLEncoding.EncodeToString
	header := encode(fmt.Appendf(nil, `{"alg":"HS256","kid":%q}`, t.id))
	mac := hmac.New(sha256.New, []byte(t.secret))
	mac.Write([]byte(header + "." + encode([]byte(content))))
	return header + ".." + encode(mac.Sum(nil))
}
