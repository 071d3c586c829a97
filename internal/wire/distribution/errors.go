package distribution

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// StatusError is returned for an answer other than success.
type StatusError struct {
	Reference Reference
	Blob      string // the digest of the requested blob; "" for a manifest
	Status    int
	Written   bool // the request was to write
}

func (e *StatusError) Error() string {
	what, remedy := e.Reference.Name(), "try again later"
	if e.Blob != "" {
		what = fmt.Sprintf("blob %.19s… of %s", e.Blob, what)
	}
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		remedy = "log in to " + e.Reference.Registry + " (docker login), or correct the pull secret"
	case e.Status == http.StatusNotFound && e.Blob == "":
		remedy = "publish it first, or correct its name"
	case e.Status == http.StatusNotFound:
		remedy = "publish it again"
	case e.Status == http.StatusTooManyRequests:
	case e.Status < http.StatusInternalServerError:
		remedy = "correct its name"
	}
	verb := "read"
	if e.Written {
		verb = "write"
	}
	return fmt.Sprintf("%s %s: the registry answered %d %s: %s", verb, what, e.Status, http.StatusText(e.Status), remedy)
}

// NotFound reports whether err means that the registry does not have what was requested.
func NotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == http.StatusNotFound
}

// MismatchError is returned for content that has another digest than its name.
type MismatchError struct {
	Reference Reference
	Want, Got string // digests
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("read %s: the registry sent %.19s… instead of %.19s…: do not use this registry before you know "+
		"who changed the content", e.Reference.Name(), e.Got, e.Want)
}

// TruncatedError is returned for a download that ended early. The part is kept, and the next
// Download continues it if the registry allows that.
type TruncatedError struct {
	Reference Reference
	Got, Want int64 // bytes
	Err       error
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("read %s: the connection ended after %d of %d bytes (%v): try again to go on from there",
		e.Reference.Name(), e.Got, e.Want, e.Err)
}

func (e *TruncatedError) Unwrap() error { return e.Err }

// TooLargeError is returned for an answer beyond a limit.
type TooLargeError struct{ Limit int64 } // bytes

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("it is beyond the limit of %d bytes: check that the name is that of a set of binaries, or of an image", e.Limit)
}

// RedirectError is returned if a registry redirects to a place that is not followed.
type RedirectError struct{ What string }

func (e *RedirectError) Error() string {
	return "the registry redirects " + e.What + ": find out who changed it"
}

// TokenServerError is returned if a registry that is reached without TLS names a token server that is not its own host
// and is reached without TLS, too. That server's answer would be sent to the registry.
type TokenServerError struct {
	Registry string // the host
	Server   string // the host of the token server; "" if it could not be read
}

func (e *TokenServerError) Error() string {
	what := "a token server that cannot be read"
	if e.Server != "" {
		what = "the token server " + e.Server + ", which is another host, without TLS"
	}
	return fmt.Sprintf("the registry %s names %s: use a registry with TLS, or find out who changed it", e.Registry, what)
}

// failed returns the error of a request without an answer.
func (r *Repository) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return Failed(r.reference, err)
}

// writes reports whether requests of a method write.
func writes(method string) bool { return method != http.MethodGet && method != http.MethodHead }

// Failed returns an error of NewClient's requests, or of oras with that client, as an error
// for people. The addresses in it are left out, since those of redirects may contain tokens, and
// so is the text of the registry's own errors.
func Failed(reference Reference, err error) error {
	var wrapped *url.Error
	var answer *errcode.ErrorResponse
	switch {
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return &StatusError{Reference: reference, Status: http.StatusUnauthorized}
	case errors.As(err, &answer):
		return &StatusError{Reference: reference, Status: answer.StatusCode, Written: writes(answer.Method)}
	case errors.As(err, &wrapped) && !errors.As(err, new(*RedirectError)) && !errors.As(err, new(*TokenServerError)):
		return fmt.Errorf("contact the registry %s: %w: check its name, the network and the proxy settings",
			reference.Registry, wrapped.Err)
	case wrapped != nil:
		err = wrapped.Err
	}
	return fmt.Errorf("contact the registry %s: %w", reference.Registry, err)
}
