package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// recordFile is the name in the data directory. What it says counts while its writer holds a lock on it.
const recordFile = "engines.json"

// errLocked says that another has the lock.
var errLocked = errors.New("locked by another process")

// record is what the owner tells others of its engines. An engine that it does not run is nil.
type record struct {
	OwnerPID int       `json:"ownerPid"`
	Postgres *endpoint `json:"postgres,omitempty"`
	Redis    *endpoint `json:"redis,omitempty"`
}

type endpoint struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

// port is the one in the URL; zero where there is none.
func (e *endpoint) port() int {
	if e == nil {
		return 0
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return 0
	}
	port, _ := strconv.Atoi(u.Port())
	return port
}

// write puts the record into the directory, whole or not at all, and returns the file: the record is live until that
// is closed. Only the owner may call it.
func (r record) write(dir string) (*os.File, error) {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	draft := filepath.Join(dir, recordFile+".new")
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	file, err := takeLock(draft)
	if err != nil {
		return nil, err
	}
	_, err = file.Write(append(content, '\n'))
	if err == nil {
		err = os.Rename(draft, filepath.Join(dir, recordFile))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// lastRecord returns what the last owner wrote, alive or not. Where there is nothing to be read, it is empty.
func lastRecord(dir string) record {
	var last record
	content, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil || json.Unmarshal(content, &last) != nil {
		return record{}
	}
	return last
}

// liveRecord returns the record of an owner that lives, and nil where there is none yet.
func liveRecord(dir string) (*record, error) {
	file, err := os.Open(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // the contract: nil where there is none yet
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := flock(file, syscall.LOCK_SH); !errors.Is(err, errLocked) {
		return nil, err // nobody holds it, or nobody can tell
	}
	var live record
	if err := json.NewDecoder(file).Decode(&live); err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return &live, nil
}

// takeLock opens a file and locks it. The lock is held until the file is closed or the process ends. Where another
// holds it, in this process or elsewhere, the error is errLocked.
func takeLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // no secret is in it
	if err != nil {
		return nil, err
	}
	if err := flock(file, syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func flock(file *os.File, how int) error {
	err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return errLocked
	case err != nil:
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	default:
		return nil
	}
}
