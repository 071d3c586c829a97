package streaming

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	maxOffers = 256
	// offerTime is how long a URL waits for its client. containerd and CRI-O forget their tokens
	// after a minute.
	offerTime = 2 * time.Minute
)

// ErrTooMany is returned if maxOffers URLs wait for their clients.
var ErrTooMany = errors.New("too many streaming URLs wait for their clients; wait two minutes and try again")

// offers holds the URLs that clients have received and not used yet. The zero value is empty.
type offers struct {
	mu  sync.Mutex
	all []offer // the oldest first
}

type offer struct {
	secret string
	target target
	until  time.Time
}

// add returns the secret with which the target can be taken once.
func (o *offers) add(t target, now time.Time) (secret string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget(now)
	if len(o.all) == maxOffers {
		return "", ErrTooMany
	}
	secret = rand.Text()
	o.all = append(o.all, offer{secret, t, now.Add(offerTime)})
	return secret, nil
}

// take removes and returns the target with this secret and path. A wrong path removes nothing.
func (o *offers) take(secret, path string, now time.Time) (t target, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget(now)
	found := -1
	for i, one := range o.all { // compare with all, in constant time
		if subtle.ConstantTimeCompare([]byte(one.secret), []byte(secret)) == 1 && one.target.path == path {
			found = i
		}
	}
	if found < 0 {
		return target{}, false
	}
	t = o.all[found].target
	o.all = slices.Delete(o.all, found, found+1)
	return t, true
}

// forget removes the offers whose time is over.
func (o *offers) forget(now time.Time) {
	o.all = slices.DeleteFunc(o.all, func(one offer) bool { return now.After(one.until) })
}
