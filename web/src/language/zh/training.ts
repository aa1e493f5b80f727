/** The training view. */
import type { training as en } from "../en/training";

export const training: Readonly<Record<keyof typeof en, string>> = {
  "training.read": "模型学习时一张图如何长成：逐步移动，或播放。",
  "training.served": "此视图需要带训练目录的服务器：请用“regard serve”加上训练目录来启动。",
  "training.none": "还没有带图的训练。在 runs/ 目录中开始的训练会自动显示在这里；其他目录请交给“regard serve”。",
  "training.loading": "正在读取训练……",
  "training.failed": "无法读取训练：{why}",
  "training.run": "训练",
  "training.example": "例子",
  "training.step": "步",
  "training.at": "第 {step} 步",
  "training.play": "播放",
  "training.pause": "暂停",
  "training.back": "前一步",
  "training.forward": "后一步",
  "training.loss": "训练损失",
  "training.scores": "各步得分",
  "training.noScores": "这次训练没有保存得分。",
  "training.layerless": "这一步没有第 {layer} 层的第 {head} 个头。",
};
