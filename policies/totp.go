package policies

import (
	"crypto/rand"
	"encoding/base32"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
)

// Codes of authenticator apps: RFC 6238 with its defaults, which all apps understand.
const (
	totpPeriod = 30 // seconds
	totpDigits = otp.DigitsSix
	totpBytes  = 20 // of a secret, as RFC 4226 section 4 recommends
)

// newTOTPSecret makes a secret of 160 random bits, in base 32.
func newTOTPSecret() string { return randomBase32(totpBytes) }

func randomBase32(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails; see crypto/rand
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)
}

// totpURI is the content of the QR code: the key URI format of Google Authenticator
// (github.com/google/google-authenticator/wiki/Key-Uri-Format).
func totpURI(email, secret string) string {
	return "otpauth://totp/Weir:" + url.PathEscape(email) + "?secret=" + secret + "&issuer=Weir"
}

// totpStep finds the step of time for which a code is valid: the present one, or one
// before or after it, for clocks that differ.
func totpStep(secret, code string, now time.Time) (step int64, ok bool) {
	present := now.Unix() / totpPeriod
	for _, step := range []int64{present, present - 1, present + 1} {
		valid, err := hotp.ValidateCustom(code, uint64(step), secret, hotp.ValidateOpts{Digits: totpDigits, Algorithm: otp.AlgorithmSHA1})
		if valid && err == nil {
			return step, true
		}
	}
	return 0, false
}

// isTOTP reports whether a code is one of an app, and not a recovery code.
func isTOTP(code string) bool {
	_, err := strconv.ParseUint(code, 10, 32)
	return err == nil && len(code) == totpDigits.Length()
}

const (
	recoveryCodes     = 10
	recoveryCodeBytes = 10 // 80 random bits: enough entropy for a plain hash
)

// newRecoveryCodes makes the recovery codes of an account, such as
// abcd-efgh-ijkl-mnop, with their hashes.
func newRecoveryCodes() (codes, hashes []string) {
	for range recoveryCodes {
		code := strings.ToLower(randomBase32(recoveryCodeBytes))
		codes = append(codes, code[:4]+"-"+code[4:8]+"-"+code[8:12]+"-"+code[12:])
		hashes = append(hashes, HashSecret(code))
	}
	return codes, hashes
}

// plainCode is a code as people type it, without what separates its parts.
func plainCode(code string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(strings.TrimSpace(code)))
}
