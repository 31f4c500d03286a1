package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"tidemark/internal/fault"
)

const (
	// refreshEvery bounds, together with rememberFor, how long a key that the issuer has withdrawn is still trusted.
	refreshEvery = 5 * time.Minute
	// refetchAfter keeps tokens with made-up key ids from turning into as many requests to the issuer.
	refetchAfter = 5 * time.Second
	fetchTimeout = 5 * time.Second
)

// publicKeyMethods lists the signing methods for which a published key is of use: the asymmetric ones. With an
// HMAC among them, anybody could sign with the public key as the secret.
func publicKeyMethods() []string {
	return []string{
		"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
	}
}

// keySet holds the keys that the issuer publishes. One goroutine does every fetch: at the start, every refreshEvery,
// and when a token names a key that is not there, because an issuer that changes its keys signs with the new one
// at once. While the issuer is away the keys of the last good fetch stay.
type keySet struct {
	url     string
	client  *http.Client
	logger  *slog.Logger
	store   *jwkset.MemoryJWKSet
	lookup  keyfunc.Keyfunc
	missing chan chan<- error // who is answered when the keys are as fresh as they can be had
	cancel  context.CancelFunc
	done    chan struct{}
}

func openKeySet(cfg Config) (*keySet, error) {
	store := jwkset.NewMemoryStorage()
	lookup, err := keyfunc.New(keyfunc.Options{Storage: store, UseWhitelist: []jwkset.USE{jwkset.UseSig, ""}})
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &keySet{
		url:     cfg.JWKSURL,
		client:  cmp.Or(cfg.HTTPClient, &http.Client{Timeout: fetchTimeout}),
		logger:  cfg.Logger,
		store:   store,
		lookup:  lookup,
		missing: make(chan chan<- error),
		cancel:  cancel,
		done:    make(chan struct{}),
	}
	go k.run(ctx)
	return k, nil
}

func (k *keySet) close() {
	k.cancel()
	<-k.done
}

func (k *keySet) run(ctx context.Context) {
	defer close(k.done)
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	fetched, err := time.Now(), k.fetch(ctx)
	for {
		var waiting chan<- error
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case waiting = <-k.missing:
		}
		if waiting == nil || time.Since(fetched) >= refetchAfter {
			fetched, err = time.Now(), k.fetch(ctx)
		}
		if waiting != nil {
			waiting <- err
		}
	}
}

// fetch replaces the keys by those that the issuer publishes now.
func (k *keySet) fetch(ctx context.Context) error {
	_, err := jwkset.NewStorageFromHTTP(k.url, jwkset.HTTPClientStorageOptions{
		Client:      k.client,
		Ctx:         ctx,
		HTTPTimeout: fetchTimeout,
		Storage:     k.store,
	})
	if err != nil && ctx.Err() == nil {
		k.logger.WarnContext(ctx, "cannot fetch the keys that tokens are signed with", "url", k.url, "error", err)
	}
	return err
}

// find is the jwt.Keyfunc: the key that the token names, or all keys where it names none.
func (k *keySet) find(ctx context.Context, token *jwt.Token) (any, error) {
	key, err := k.lookup.KeyfuncCtx(ctx)(token)
	if !isMissing(key, err) {
		return key, err
	}
	if err := k.refresh(ctx); err != nil {
		return nil, fault.NotAvailable(fmt.Errorf("fetch the keys of tokens: %w", err))
	}
	key, err = k.lookup.KeyfuncCtx(ctx)(token)
	if isMissing(key, err) {
		return nil, fault.New(fault.Unauthenticated, "the token is signed with a key that its issuer does not publish")
	}
	return key, err
}

func isMissing(key any, err error) bool {
	set, isSet := key.(jwt.VerificationKeySet)
	return errors.Is(err, jwkset.ErrKeyNotFound) || err == nil && isSet && len(set.Keys) == 0
}

// refresh returns when the keys are no older than refetchAfter, or with the error of the last try at that.
func (k *keySet) refresh(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case k.missing <- answer:
	case <-k.done:
		return errors.New("the verifier is closed")
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
