/** The training view. */
import type { training as en } from "../en/training";

export const training: Readonly<Record<keyof typeof en, string>> = {
  "view.training": "训练",
  "training.read": "注意力图在训练中如何变化。可逐步查看，或播放。",
  "help.training.1": "逐步查看，观察模式如何出现。",
  "help.training.2": "留意注意力图旁的指标：两者常常同时跃升。",
  "help.training.3": "选中一个头：切换步数时选择保持不变。",
  "training.served": "此视图需要带训练目录的服务器：请用“regard serve”加上训练目录启动。",
  "training.none": "还没有带注意力图的训练。runs/ 目录中的训练会自动显示；其他目录请传给“regard serve”。",
  "training.loading": "正在读取训练…",
  "training.failed": "无法读取训练：{why}",
  "training.run": "训练",
  "training.example": "样本",
  "training.step": "步数",
  "training.at": "第 {step} 步",
  "training.play": "播放",
  "training.pause": "暂停",
  "training.back": "上一步",
  "training.forward": "下一步",
  "training.loss": "训练损失",
  "training.scores": "各步的指标",
  "training.noScores": "这次训练没有保存指标。",
  "training.layerless": "这一步的注意力图没有第 {layer} 层第 {head} 头。",
};
