package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// secretBytes is how many random bytes a secret is made of.
const secretBytes = 32

// Secret returns the key that tokens of a first run are signed with: 64 hexadecimal digits. It is made once, at random,
// and kept in the file jwt-secret of the data directory, for its owner's eyes only; what the file holds is the key
// itself, so another process can be given it as it stands. However many processes ask at the same time, all get the
// same one. An empty dataDir means DefaultDataDir.
func Secret(dataDir string) (string, error) {
	secret, err := readOrMakeSecret(dataDir)
	if err != nil {
		return "", fmt.Errorf("token secret: %w", err)
	}
	return secret, nil
}

// KeptSecret returns the key that Secret made in the data directory, and makes none: where there is none yet, the error is
// fs.ErrNotExist.
func KeptSecret(dataDir string) (string, error) {
	dir, err := resolveDataDir(dataDir)
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	secret, err := readSecret(filepath.Join(dir, "jwt-secret"))
	if err != nil {
		return "", fmt.Errorf("token secret: %w", err)
	}
	return secret, nil
}

func readOrMakeSecret(dataDir string) (string, error) {
	dir, err := makeDataDir(dataDir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "jwt-secret")
	secret, err := readSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := makeSecret(path); err != nil {
		return "", err
	}
	return readSecret(path)
}

func readSecret(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(content))
	if raw, err := hex.DecodeString(secret); err != nil || len(raw) != secretBytes {
		return "", fmt.Errorf("%s does not hold %d hexadecimal digits; remove it for a new one", path, 2*secretBytes)
	}
	return secret, nil
}

// makeSecret writes the file under another name and links it to its own, which fails where somebody was faster: so it
// is never seen half written, and never replaced.
func makeSecret(path string) error {
	draft, err := os.CreateTemp(filepath.Dir(path), "jwt-secret.new-") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // it never fails
	_, err = draft.WriteString(hex.EncodeToString(secret) + "\n")
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err := os.Link(draft.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
