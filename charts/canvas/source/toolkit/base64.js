// Bytes as letters, for a page that holds them.

export const toBase64 = (bytes) => {
  let letters = "";
  for (let from = 0; from < bytes.length; from += 0x8000)
    letters += String.fromCharCode(...bytes.subarray(from, from + 0x8000));
  return btoa(letters);
};

export const fromBase64 = (text) => Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
