// Package distribution reads manifests and blobs from an OCI registry. It trusts the registry with
// nothing: everything that it returns has the digest that the caller named, and the sizes of
// answers are bounded. swdt and programs on nodes share it, so it needs little beside net/http.
//
//   - reference.go: the name of an artifact, as people write it
//   - imagename.go: the name of an image, as pods have it
//   - repository.go: requests, logins and redirects
//   - manifest.go: manifests
//   - tags.go: the tags of a repository
//   - blob.go: blobs, into files, resumed after an interruption
//   - errors.go: why a request failed
//   - pullsecret.go: logins from a pull secret of Kubernetes
package distribution

import (
	"encoding/hex"
	"fmt"
	"net"
	"strings"

	"oras.land/oras-go/v2/registry"
)

// The schemes of references in URLs.
const (
	Scheme = "oci"
	// PlainScheme is the scheme for a registry without TLS. Each machine on the way can read a login
	// that is sent to such a registry.
	PlainScheme = "oci+http"
)

// Reference names an artifact in a registry, by a tag or by a digest.
type Reference struct {
	Registry   string // host, or host:port
	Repository string
	Tag        string // "" if there is a Digest
	Digest     string // sha256:…, or "" if there is a Tag
	// PlainHTTP is true if the registry is reached without TLS: it is on your machine, or the
	// reference has PlainScheme.
	PlainHTTP bool
}

// ParseReference parses REGISTRY/REPOSITORY:TAG and REGISTRY/REPOSITORY@sha256:DIGEST, each with
// or without oci:// or oci+http:// before it. Without tag and digest the tag is latest.
func ParseReference(text string) (Reference, error) {
	r, err := parse(text)
	if err == nil && r.Tag == "" && r.Digest == "" {
		r.Tag = latest
	}
	return r, err
}

// latest is the tag of a reference that has neither a tag nor a digest.
const latest = "latest"

// ParseTarget parses a reference under which something is published. The reference must have a tag, or else
// the error is a *TargetError: whoever leaves out the tag would move latest, which other people may use.
func ParseTarget(text string) (Reference, error) {
	r, err := parse(text)
	if err == nil && r.Tag == "" {
		return Reference{}, &TargetError{Text: text, Target: r}
	}
	return r, err
}

// parse is like ParseReference, but sets no default tag.
func parse(text string) (Reference, error) {
	bare, plain := text, false
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		switch strings.ToLower(scheme) {
		case Scheme:
		case PlainScheme:
			plain = true
		default:
			return Reference{}, &ReferenceError{Text: text}
		}
		bare = rest
	}
	parsed, err := registry.ParseReference(bare)
	if err != nil || strings.Contains(parsed.Registry, "@") {
		return Reference{}, &ReferenceError{Text: text}
	}
	r := Reference{Registry: parsed.Registry, Repository: parsed.Repository,
		PlainHTTP: plain || isLoopback(parsed.Registry)}
	switch name := parsed.Reference; {
	case IsDigest(name):
		r.Digest = name
	case strings.Contains(name, ":"): // another algorithm than SHA-256
		return Reference{}, &ReferenceError{Text: text}
	default:
		r.Tag = name
	}
	return r, nil
}

// IsTag reports whether text can be the tag of an artifact.
func IsTag(text string) bool {
	return registry.Reference{Reference: text}.ValidateReferenceAsTag() == nil
}

// IsDigest reports whether text is sha256: and 64 hexadecimal digits.
func IsDigest(text string) bool {
	digits, ok := strings.CutPrefix(text, "sha256:")
	if !ok || len(digits) != 64 || digits != strings.ToLower(digits) {
		return false
	}
	_, err := hex.DecodeString(digits)
	return err == nil
}

// isLoopback reports whether a registry is on this machine, where no other machine reads along.
func isLoopback(registry string) bool {
	host, _, err := net.SplitHostPort(registry)
	if err != nil {
		host = registry
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Host returns the address that is contacted, under which logins are kept.
func (r Reference) Host() string {
	return registry.Reference{Registry: r.Registry}.Host()
}

// Name returns the reference without a scheme.
func (r Reference) Name() string {
	if r.Digest != "" {
		return r.Registry + "/" + r.Repository + "@" + r.Digest
	}
	return r.Registry + "/" + r.Repository + ":" + r.Tag
}

// String returns the reference as a URL, which ParseReference understands.
func (r Reference) String() string {
	scheme := Scheme
	if r.PlainHTTP && !isLoopback(r.Registry) {
		scheme = PlainScheme
	}
	return scheme + "://" + r.Name()
}

// WithTag returns the reference to another tag of the repository.
func (r Reference) WithTag(tag string) Reference {
	r.Tag, r.Digest = tag, ""
	return r
}

// WithDigest returns the reference to the artifact of a digest in the repository.
func (r Reference) WithDigest(digest string) Reference {
	r.Tag, r.Digest = "", digest
	return r
}

// name returns the last part of a manifest's URL.
func (r Reference) name() string {
	if r.Digest != "" {
		return r.Digest
	}
	return r.Tag
}

// TargetError reports a reference without a tag, under which nothing is published.
type TargetError struct {
	Text   string
	Target Reference
}

func (e *TargetError) Error() string {
	return fmt.Sprintf("publish %.200s: a set is published under a tag: write %s/%s:TAG", e.Text, e.Target.Registry,
		e.Target.Repository)
}

// ReferenceError reports a text that names no artifact.
type ReferenceError struct{ Text string }

// Error leaves a password out.
func (e *ReferenceError) Error() string {
	text := e.Text
	if at := strings.LastIndex(text, "@"); at >= 0 && !strings.HasPrefix(text[at:], "@sha256:") {
		text = "…" + text[at:]
	}
	return fmt.Sprintf("%.200q names no artifact: write REGISTRY/REPOSITORY:TAG or "+
		"REGISTRY/REPOSITORY@sha256:DIGEST", text)
}
