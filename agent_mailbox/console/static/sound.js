// Two tones for a request that begins to wait, if the person wants them. They are made here, from no file.
import { $, attempt } from "./dom.js";

const TONES = [[660, 0], [880, 0.15]]; // Hz, and seconds from now
const LENGTH = 0.14;
const wanted = $("#sound");
let audio = null;

export const sound = () => {
  if (!wanted.checked || !window.AudioContext) return;
  audio ??= new AudioContext();
  audio.resume(); // a browser keeps it silent until one has clicked on the page
  for (const [tone, after] of TONES) {
    const [oscillator, gain] = [audio.createOscillator(), audio.createGain()];
    const begin = audio.currentTime + after;
    oscillator.frequency.value = tone;
    gain.gain.setValueAtTime(0.1, begin);
    gain.gain.exponentialRampToValueAtTime(0.001, begin + LENGTH);
    oscillator.connect(gain).connect(audio.destination);
    oscillator.start(begin);
    oscillator.stop(begin + LENGTH);
  }
};

wanted.checked = attempt(() => localStorage.getItem("sound")) === "on";
wanted.addEventListener("change", () => {
  attempt(() => localStorage.setItem("sound", wanted.checked ? "on" : "off"));
  sound(); // to hear what it will be
});
