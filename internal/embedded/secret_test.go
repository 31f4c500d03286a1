package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestSecretIsMadeOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	var asking sync.WaitGroup
	secrets := make([]string, 8)
	for i := range secrets {
		asking.Go(func() {
			secret, err := Secret(dir)
			if err != nil {
				t.Error(err)
			}
			secrets[i] = secret
		})
	}
	asking.Wait()
	for _, secret := range secrets {
		if len(secret) != 2*secretBytes || secret != secrets[0] {
			t.Errorf("got %q, want the %d digits that others got: %q", secret, 2*secretBytes, secrets[0])
		}
	}

	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 || files[0].Name() != "jwt-secret" {
		t.Errorf("the directory has %v, want jwt-secret alone", files)
	}
	info, err := files[0].Info()
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
}

func TestSecretThatIsNone(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty": "", "short": "abcd\n", "not hexadecimal": strings.Repeat("z", 64), "odd": strings.Repeat("a", 63),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "jwt-secret")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Secret(dir); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got error %v, want one that names %s", err, path)
			}
		})
	}
}
