package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Skew is the difference between the API server's clock and this machine's clock.
type Skew struct {
	// Offset is the server's time minus this machine's.
	Offset time.Duration `json:"offset"`
	// Uncertainty is the possible error of the offset: half of the round trip, plus half
	// a second since a Date header has whole seconds.
	Uncertainty time.Duration `json:"uncertainty"`
}

// ClockSkew compares the API server's clock with this machine's. It uses the Date header
// of an answer, even if the answer is an error.
func (c *Cluster) ClockSkew(ctx context.Context) (Skew, error) {
	const doing = "ask the API server for the time"
	if c.config == nil {
		return Skew{}, fmt.Errorf("%s: %w", doing, errors.ErrUnsupported)
	}
	client, err := httpClient(c.config)
	if err != nil {
		return Skew{}, &ConfigError{Err: err}
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.baseURL()+"/version", nil)
	if err != nil {
		return Skew{}, fmt.Errorf("%s: %w", doing, err)
	}
	// Make two requests. The first also makes the connection, whose handshakes lengthen
	// its round trip; so the second is shorter and more precise.
	var skew Skew
	for range 2 {
		if skew, err = askTime(client, request); err != nil {
			return Skew{}, c.fail(doing, Permission{}, err)
		}
	}
	return skew, nil
}

// dateResolution is the resolution of a Date header.
const dateResolution = time.Second

func askTime(client *http.Client, request *http.Request) (Skew, error) {
	sent := time.Now()
	answer, err := client.Do(request)
	if err != nil {
		return Skew{}, err
	}
	trip := time.Since(sent)
	if err := answer.Body.Close(); err != nil {
		return Skew{}, err
	}
	date, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return Skew{}, fmt.Errorf("its answer has no usable Date: %w", err)
	}
	server, local := date.Add(dateResolution/2), sent.Add(trip/2)
	return Skew{Offset: server.Sub(local), Uncertainty: dateResolution/2 + trip/2}, nil
}

// baseURL returns the server's URL. If the kubeconfig has only host:port, it adds the
// scheme.
func (c *Cluster) baseURL() string {
	if strings.Contains(c.server, "://") {
		return strings.TrimSuffix(c.server, "/")
	}
	scheme := "http://"
	if c.config.CAFile != "" || len(c.config.CAData) > 0 || c.config.Insecure {
		scheme = "https://"
	}
	return scheme + c.server
}
