package ssh

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"
)

func TestWatch(t *testing.T) {
	t.Run("ends with the connection", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			done, asked := make(chan struct{}), 0
			time.AfterFunc(time.Minute+time.Second, func() { close(done) })
			if err := watch(done, 15*time.Second, 45*time.Second, func() error { asked++; return nil }); err != nil {
				t.Fatal(err)
			}
			if asked != 4 {
				t.Errorf("asked %d times in a minute", asked)
			}
		})
	})
	t.Run("notices silence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			begun, never := time.Now(), make(chan error)
			defer close(never)
			err := watch(make(chan struct{}), 15*time.Second, 45*time.Second, func() error { return <-never })
			switch {
			case !errors.Is(err, errDead):
				t.Fatalf("the error is %v, want %v", err, errDead)
			case time.Since(begun) != time.Minute:
				t.Fatalf("time.Since(begun) is %v, want %v", time.Since(begun), time.Minute)
			}
		})
	})
	t.Run("leaves a broken connection to explain itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			err := watch(make(chan struct{}), time.Second, time.Minute, func() error { return errors.New("EOF") })
			if err != nil {
				t.Fatal(err)
			}
		})
	})
}

func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var barked time.Duration
		w := newWatchdog(10*time.Second, func() { barked = time.Since(begun) })
		time.Sleep(9 * time.Second)
		w.pause()
		w.pause() // a prompt within a prompt
		time.Sleep(time.Hour)
		w.resume()
		time.Sleep(time.Hour)
		if w.expired() {
			t.Fatal("it barked while paused")
		}
		w.resume()
		time.Sleep(time.Hour)
		if want := 2*time.Hour + 19*time.Second; !w.expired() || barked != want {
			t.Errorf("barked after %s, not %s", barked, want)
		}

		quiet := newWatchdog(time.Second, func() { t.Error("barked after stop") })
		quiet.stop()
		time.Sleep(time.Hour)
	})
}

// slowSigner is a signer that takes an hour.
type slowSigner struct{ ssh.Signer }

func (slowSigner) PublicKey() ssh.PublicKey { return nil }

func (slowSigner) Sign(io.Reader, []byte) (*ssh.Signature, error) {
	time.Sleep(time.Hour)
	return &ssh.Signature{}, nil
}

func TestSigningDoesNotCountAgainstTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := newWatchdog(20*time.Second, func() { t.Error("barked while a key signed") })
		defer dog.stop()
		l := login{own: true, key: slowSigner{}, watchdog: dog}
		signers := l.signers(t.Context())
		if len(signers) != 1 {
			t.Fatalf("got %d signers, want 1", len(signers))
		}
		if _, err := signers[0].Sign(nil, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTokens(t *testing.T) {
	tokens := map[byte]string{'h': "node", 'r': "dev"}
	for text, want := range map[string]string{
		"%h.example": "node.example", "%r@%h": "dev@node", "100%%": "100%", "%x": "%x", "50%": "50%", "": "",
	} {
		if got := expandTokens(text, tokens); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
	}
}
