package join

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// rootCertificates has the machine trust the certification authorities of the node file: it adds them to the store by
// which Windows verifies the servers of Go programs, as containerd is one. They are not in a hosts.toml of containerd: on
// Windows, its `ca` replaces the machine's roots for that registry (containerd v1.7.12,
// remotes/docker/config/config_windows.go: rootSystemPool). A process that has verified a server before may not see the
// change, so containerd is restarted.
type rootCertificates struct{ *joining }

// rootRecord is a root certificate that the join has added to the machine's store.
type rootRecord struct {
	SHA256   string    `json:"sha256"`
	Name     string    `json:"name"`
	NotAfter time.Time `json:"notAfter"`
}

// root is a wanted root certificate.
type root struct {
	rootRecord
	der []byte
}

func (s *rootCertificates) Name() string { return stepRoots }

// rootChange is the difference between the machine's store and the node file.
type rootChange struct {
	add    []root
	remove []rootRecord // of an earlier run, and no longer wanted
}

func (s *rootCertificates) compare(ctx context.Context, r record) (c rootChange, err error) {
	wanted, err := s.wanted()
	if err != nil || len(wanted)+len(r.Roots) == 0 {
		return c, err
	}
	trusted, err := trustedRoots(ctx, s.node)
	if err != nil {
		return c, err
	}
	for _, root := range wanted {
		if !slices.Contains(trusted, root.SHA256) {
			c.add = append(c.add, root)
		}
	}
	for _, added := range r.Roots {
		if !slices.ContainsFunc(wanted, func(w root) bool { return w.SHA256 == added.SHA256 }) {
			c.remove = append(c.remove, added)
		}
	}
	return c, nil
}

func (s *rootCertificates) Plan(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	s.compared = &r
	c, err := s.compare(ctx, r)
	if err != nil {
		return plan.Change{}, err
	}
	var added []string
	for _, root := range c.add {
		added = append(added, root.Name)
	}
	var parts []string
	if len(added) > 0 {
		parts = append(parts, "trust "+strings.Join(added, ", "))
	}
	if len(c.remove) > 0 {
		parts = append(parts, "no longer trust "+rootNames(c.remove))
	}
	return plan.Change{Needed: len(parts) > 0, Summary: strings.Join(parts, "; ")}, nil
}

func (s *rootCertificates) Apply(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	c, err := s.compare(ctx, r)
	if err != nil {
		return plan.Outcome{}, err
	}
	request := &agentv1.ChangeRootsRequest{Remove: hashesOf(c.remove)}
	err = update(ctx, s.node, func(r *record) {
		for _, root := range c.add {
			request.Add = append(request.Add, root.der)
			r.addRoot(root.rootRecord)
		}
		if r.service(containerdName) != nil {
			r.addRestart(containerdName)
		}
	})
	if err != nil {
		return plan.Outcome{}, err
	}
	if err := changeRoots(ctx, s.node, request); err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, update(ctx, s.node, func(r *record) { r.dropRoots(c.remove) })
}

func (s *rootCertificates) PlanUndo(ctx context.Context) (plan.Change, error) {
	r, err := load(ctx, s.node)
	if err != nil || len(r.Roots) == 0 {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "no longer trust " + rootNames(r.Roots)}, nil
}

func (s *rootCertificates) Undo(ctx context.Context, _ ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if err := changeRoots(ctx, s.node, &agentv1.ChangeRootsRequest{Remove: hashesOf(r.Roots)}); err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, update(ctx, s.node, func(r *record) { r.Roots = nil })
}

// wanted reads the certification authorities of the node file, each once.
func (s *rootCertificates) wanted() (all []root, err error) {
	var seen []string
	for i, entry := range s.spec.CertificateAuthorities {
		text, from := []byte(entry), fmt.Sprintf("spec.kubernetes.certificateAuthorities[%d]", i)
		if !strings.Contains(entry, "-----BEGIN") {
			from = s.doc.Resolve(strings.TrimSpace(entry))
			if text, err = os.ReadFile(from); err != nil {
				return nil, fmt.Errorf("read the certification authority: %w; write a certificate in PEM, or the path of a "+
					"file with it, into spec.kubernetes.certificateAuthorities", err)
			}
		}
		roots, err := parseRoots(text)
		if err != nil {
			return nil, fmt.Errorf("read the certification authority %s: %w", from, err)
		}
		for _, root := range roots {
			if !slices.Contains(seen, root.SHA256) {
				all, seen = append(all, root), append(seen, root.SHA256)
			}
		}
	}
	return all, nil
}

// parseRoots reads certificates in PEM. Each must be one of a certification authority.
func parseRoots(text []byte) (all []root, err error) {
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		switch {
		case block == nil && len(all) == 0:
			return nil, errors.New("it has no certificate in PEM: convert it with `openssl x509 -inform der`")
		case block == nil:
			return all, nil
		case block.Type != "CERTIFICATE":
			return nil, fmt.Errorf("it has a block %q: leave only certificates in it", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		name := certificate.Subject.String()
		if !certificate.IsCA && !bytes.Equal(certificate.RawIssuer, certificate.RawSubject) {
			return nil, fmt.Errorf("%s is not a certification authority: name the authority that has issued it", name)
		}
		sum := sha256.Sum256(block.Bytes)
		all = append(all, root{rootRecord{hex.EncodeToString(sum[:]), name, certificate.NotAfter.UTC()}, block.Bytes})
	}
}

// trustedRoots returns the SHA-256 of each root certificate of the machine's store.
func trustedRoots(ctx context.Context, n *node.Node) ([]string, error) {
	reply, err := n.Settings.ListRoots(ctx, &agentv1.ListRootsRequest{})
	if err != nil {
		return nil, fmt.Errorf("list the machine's root certificates: %w", err)
	}
	return reply.GetSha256(), nil
}

func changeRoots(ctx context.Context, n *node.Node, request *agentv1.ChangeRootsRequest) error {
	if _, err := n.Settings.ChangeRoots(ctx, request); err != nil {
		return fmt.Errorf("change the machine's root certificates: %w", err)
	}
	return nil
}

func (r *record) addRoot(added rootRecord) {
	if !slices.ContainsFunc(r.Roots, func(o rootRecord) bool { return o.SHA256 == added.SHA256 }) {
		r.Roots = append(r.Roots, added)
	}
}

func (r *record) dropRoots(dropped []rootRecord) {
	hashes := hashesOf(dropped)
	r.Roots = slices.DeleteFunc(r.Roots, func(o rootRecord) bool { return slices.Contains(hashes, o.SHA256) })
}

func hashesOf(roots []rootRecord) (all []string) {
	for _, root := range roots {
		all = append(all, root.SHA256)
	}
	return all
}

func rootNames(roots []rootRecord) string {
	var names []string
	for _, root := range roots {
		names = append(names, root.Name)
	}
	return strings.Join(names, ", ")
}
