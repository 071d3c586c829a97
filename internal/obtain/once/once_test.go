package once_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/swdt-dev/swdt/internal/obtain/once"
)

func TestWorkIsDoneOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m once.Map[string, int]
		var group sync.WaitGroup
		release := make(chan struct{})
		works := make(chan int, 9)
		for range 9 {
			group.Go(func() {
				got, err := m.Do(t.Context(), "key", func() (int, bool, error) {
					<-release
					works <- 1
					return 42, true, nil
				})
				switch {
				case err != nil:
					t.Error(err)
				case got != 42:
					t.Errorf("got is %v, want 42", got)
				}
			})
		}
		synctest.Wait()
		if got, err := m.Do(t.Context(), "another", func() (int, bool, error) {
			return 7, true, nil
		}); err != nil || got != 7 {
			t.Errorf("another key: %d, %v", got, err)
		}
		close(release)
		group.Wait()
		if len(works) != 1 {
			t.Errorf("it was done %d times", len(works))
		}
	})
}

func TestWorkIsDoneAgain(t *testing.T) {
	var m once.Map[string, int]
	failed := errors.New("failed")
	for i, c := range []struct {
		keep bool
		err  error
	}{{true, failed}, {false, nil}, {true, nil}} {
		got, err := m.Do(t.Context(), "key", func() (int, bool, error) { return i, c.keep, c.err })
		if !errors.Is(err, c.err) || c.err == nil && got != i {
			t.Errorf("%d: got %d, %v", i, got, err)
		}
	}
	got, err := m.Do(t.Context(), "key", func() (int, bool, error) { return 99, true, nil })
	if err != nil || got != 2 {
		t.Errorf("kept: %d, %v", got, err)
	}
}

func TestAnInvalidResultIsMadeAgain(t *testing.T) {
	valid := true
	m := once.Map[string, int]{Valid: func(int) bool { return valid }}
	for i, c := range []struct {
		valid bool
		want  int
	}{{true, 0}, {true, 0}, {false, 2}, {true, 2}} {
		valid = c.valid
		got, err := m.Do(t.Context(), "key", func() (int, bool, error) { return i, true, nil })
		if err != nil || got != c.want {
			t.Errorf("%d: got %d, %v, want %d", i, got, err, c.want)
		}
	}
}

func TestAWaitingCallerCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m once.Map[string, int]
		release, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = m.Do(t.Context(), "key", func() (int, bool, error) {
				<-release
				return 1, true, nil
			})
		}()
		synctest.Wait()
		why := errors.New("nobody wants it any more")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := m.Do(ctx, "key", func() (int, bool, error) { return 2, true, nil }); !errors.Is(err, why) {
			t.Errorf("the error is %v, want %v", err, why)
		}
		close(release)
		<-ended
	})
}
